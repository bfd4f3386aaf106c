tornasole_fuzz(fuzz_event SOURCES fuzz_event.cc LINKS format)
