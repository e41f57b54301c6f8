"""Datasets: raw files to one tidy, self-describing table each."""
