"""Measurements the project makes itself."""
