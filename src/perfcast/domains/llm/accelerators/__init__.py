"""Public facts of accelerators and of language models, dated, each with its source."""
