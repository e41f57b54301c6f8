"""Gradient-boosted trees."""
