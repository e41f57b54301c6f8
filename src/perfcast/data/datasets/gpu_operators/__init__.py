"""Times of the operators of language models on GPUs."""
