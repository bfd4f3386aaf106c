tornasole_fuzz(fuzz_s3_xml SOURCES fuzz_s3_xml.cc LINKS store)
