"""Catalog of CPU models, families and dated vendor announcements."""
