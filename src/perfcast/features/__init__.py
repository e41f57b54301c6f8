"""Derived columns, one module per feature group."""
