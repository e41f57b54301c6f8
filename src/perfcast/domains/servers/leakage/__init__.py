"""Leakage checks of dated facts."""
