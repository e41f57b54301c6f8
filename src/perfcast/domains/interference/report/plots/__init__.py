"""Plots of interference."""
