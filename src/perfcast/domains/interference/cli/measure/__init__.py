"""Measure this machine: interference of neighbors."""
