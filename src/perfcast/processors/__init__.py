"""Processor names, families and the catalogue join."""
