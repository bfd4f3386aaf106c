tornasole_fuzz(fuzz_trial SOURCES fuzz_trial.cc LINKS trial)
