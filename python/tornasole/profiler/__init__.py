"""The names of the platform's profiler that training scripts import. Tornasole captures tensors and measures no times:
its answer to every question about profiling is that there is none."""
