"""Seeded generated inputs, shaped like the real ones, defects included."""
