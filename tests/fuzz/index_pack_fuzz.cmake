tornasole_fuzz(fuzz_index_pack SOURCES fuzz_index_pack.cc LINKS format)
