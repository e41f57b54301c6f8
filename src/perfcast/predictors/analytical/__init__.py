"""Analytical models: physical terms and announced gains with fitted coefficients."""
