"""Datasets measured by the project on one machine."""
