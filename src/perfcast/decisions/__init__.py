"""Decisions on predictions: ranking under constraints, what-if grids, and the nearest measured machines."""
