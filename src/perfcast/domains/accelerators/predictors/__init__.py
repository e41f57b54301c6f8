"""Predictors of accelerators."""
