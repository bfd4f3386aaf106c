tornasole_fuzz(fuzz_configuration SOURCES fuzz_configuration.cc LINKS base tensor config)
