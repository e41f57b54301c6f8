"""Times of whole models on GPUs in single precision."""
