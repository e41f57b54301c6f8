"""Feature groups."""
