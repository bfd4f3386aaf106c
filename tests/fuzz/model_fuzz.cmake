tornasole_fuzz(fuzz_model SOURCES fuzz_model.cc LINKS format)
