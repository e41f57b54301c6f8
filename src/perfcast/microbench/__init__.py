"""Microbenchmarks of this machine, and the description of its hardware."""
