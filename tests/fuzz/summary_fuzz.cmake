tornasole_fuzz(fuzz_summary SOURCES fuzz_summary.cc LINKS tensorboard)
