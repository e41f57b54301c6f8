"""Designs with the performance gain that their vendor announced over the previous one, as known on a given day.

The facts were recorded from memory of the events that the tables name; they were not checked against the documents. A
blank gain means that none was announced. No value is a measured result, and no value after the given day is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log1p

import pandas as pd

from perfcast.processors.families import read_table


@dataclass(frozen=True)
class Announcement:
    """One design: vendor, predecessor, announced gain over it (fraction), day and source of the announcement."""

    name: str
    vendor: str
    predecessor: str | None
    gain: float | None
    announced: pd.Timestamp | None
    source: str


def read_announcements(file: str, key: str) -> dict[str, Announcement]:
    """Return the rows of a table of this package by its column `key`, every predecessor before its followers."""
    return {
        row[key]: Announcement(
            row[key],
            row["vendor"],
            row["predecessor"] or None,
            float(row["gain_percent"]) / 100 if row["gain_percent"] else None,
            pd.Timestamp(row["announced"]) if row["announced"] else None,
            row["source"],
        )
        for row in read_table(file)
    }


def announced_logs(table: Mapping[str, Announcement], as_of: pd.Timestamp) -> dict[str, float]:
    """Return the natural logarithm of every design's announced level over the oldest one of its line.

    The sum of the gains announced on or before `as_of` along its line. A design without an announced gain has the
    level of its predecessor. A gain announced after `as_of` is replaced by the mean of the gains that the vendor had
    announced by then.
    """
    levels: dict[str, float] = {}
    for design in table.values():
        before = levels[design.predecessor] if design.predecessor else 0.0
        levels[design.name] = before + log1p(_expected_gain(table, design, as_of))
    return levels


def _expected_gain(table: Mapping[str, Announcement], design: Announcement, as_of: pd.Timestamp) -> float:
    if design.gain is None or design.announced is None:
        return 0.0
    if design.announced <= as_of:
        return design.gain
    # A gain of zero marks a variant of another design, known from its name.
    announced_gains = [
        other.gain
        for other in table.values()
        if other.vendor == design.vendor and other.gain and other.announced is not None and other.announced <= as_of
    ]
    return sum(announced_gains) / len(announced_gains) if announced_gains and design.gain else 0.0
