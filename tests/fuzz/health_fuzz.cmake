tornasole_fuzz(fuzz_health SOURCES fuzz_health.cc LINKS format)
