tornasole_fuzz(fuzz_collections SOURCES fuzz_collections.cc LINKS format)
