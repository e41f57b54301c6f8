"""GPPerf: matrix products on GPUs."""
