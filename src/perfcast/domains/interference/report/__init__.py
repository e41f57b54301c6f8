"""Sections and plots of the report on interference."""
