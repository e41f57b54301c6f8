"""Measure this machine: matrix products or a suite of kernels."""
