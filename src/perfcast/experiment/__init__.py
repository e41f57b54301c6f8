"""Experiments: folds and row masks, model selection, training jobs, the final fit and its explanation."""
