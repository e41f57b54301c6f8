"""Datasets of accelerators."""
