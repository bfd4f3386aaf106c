tornasole_fuzz(fuzz_index SOURCES fuzz_index.cc LINKS format)
