"""Feature groups of coffee."""
