"""Parsers of the free-text columns of published results."""
