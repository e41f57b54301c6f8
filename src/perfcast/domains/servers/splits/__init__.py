"""Splits of servers."""
