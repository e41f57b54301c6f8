"""Splits of latencies on devices and in search spaces never seen."""
