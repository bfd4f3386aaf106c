tornasole_fuzz(fuzz_pattern SOURCES fuzz_pattern.cc LINKS pattern base)
