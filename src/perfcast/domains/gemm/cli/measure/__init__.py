"""Measure this machine: matrix products."""
