tornasole_fuzz(fuzz_tolerance SOURCES fuzz_tolerance.cc LINKS tools)
