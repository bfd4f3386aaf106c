tornasole_fuzz(fuzz_record SOURCES fuzz_record.cc LINKS format)
