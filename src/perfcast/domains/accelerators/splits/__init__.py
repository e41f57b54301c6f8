"""Splits of accelerators."""
