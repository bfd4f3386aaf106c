tornasole_fuzz(fuzz_rule_files SOURCES fuzz_rule_files.cc LINKS rules)
