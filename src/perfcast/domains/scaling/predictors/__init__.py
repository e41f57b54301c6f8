"""Scaling laws of trained models: results of larger or longer training from those of smaller runs."""
