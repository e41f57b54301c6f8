"""Times of single kernels on GPUs in single precision."""
