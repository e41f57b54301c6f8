"""Sections of the report on servers."""
