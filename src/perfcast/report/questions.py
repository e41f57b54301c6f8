"""Titles of splits for readers of the report."""

from __future__ import annotations

from perfcast import splits


def asks_about(split: str) -> str:
    """Return the title of a split; "" for a name that is no split."""
    declared = splits.declaration(split)
    return declared.title if declared else ""
