"""Splits of matrix products."""
