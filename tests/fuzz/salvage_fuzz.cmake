tornasole_fuzz(fuzz_salvage SOURCES fuzz_salvage.cc LINKS tools)
