tornasole_fuzz(fuzz_state SOURCES fuzz_state.cc LINKS format)
