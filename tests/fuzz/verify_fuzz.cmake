tornasole_fuzz(fuzz_verify SOURCES fuzz_verify.cc LINKS tools)
