"""Splits of coffee."""
