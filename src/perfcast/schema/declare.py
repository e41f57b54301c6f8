"""Declarations of the usual columns."""

from __future__ import annotations

from perfcast.schema.table import Column, Kind, Role, Tag


def category(name: str, role: Role, group: str, meaning: str, *tags: Tag) -> Column:
    """Declare a categorical column."""
    return Column(name, Kind.CATEGORICAL, role, group, meaning=meaning, tags=tags)


def number(
    name: str,
    group: str,
    meaning: str,
    *,
    unit: str = "",
    low: float = 1,
    high: float | None = None,
    tags: tuple[Tag, ...] = (),
) -> Column:
    """Declare a numerical feature."""
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, low, high, tags)


def key(name: str, meaning: str, *tags: Tag) -> Column:
    """Declare a key of the row or of its group."""
    return Column(name, Kind.CATEGORICAL, Role.KEY, "problem", meaning=meaning, tags=tags)


def measured(name: str, meaning: str) -> Column:
    """Declare a number that describes the measurement itself; it is provenance."""
    return Column(name, Kind.NUMERICAL, Role.PROVENANCE, "problem", meaning=meaning, low=0)
