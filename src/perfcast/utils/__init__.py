"""Small helpers without knowledge of benchmarks: errors, files, YAML, limits, plug-in lookup."""
