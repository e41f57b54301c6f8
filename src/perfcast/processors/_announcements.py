"""Lines of designs, each announced with a gain over the one before it, and what was known of them on a given day.

The tables' facts are as remembered from the occasions that they name, not read off the documents again. A blank gain is
"nothing was announced". Nothing in them is a measured result, and whoever asks as of a day is told nothing said later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log1p

import pandas as pd

from perfcast.processors.families import read_table


@dataclass(frozen=True)
class Announcement:
    """One design: its maker, the one it follows, and the gain (fraction) over that one with the day it was said."""

    name: str
    maker: str
    forerunner: str | None
    gain: float | None
    announced: pd.Timestamp | None
    said: str


def read_announcements(file: str, key: str) -> dict[str, Announcement]:
    """Return the rows of a table of this package by its column `key`, every forerunner before its followers."""
    return {
        row[key]: Announcement(
            row[key],
            row["maker"],
            row["forerunner"] or None,
            float(row["gain_percent"]) / 100 if row["gain_percent"] else None,
            pd.Timestamp(row["announced"]) if row["announced"] else None,
            row["said"],
        )
        for row in read_table(file)
    }


def announced_logs(table: Mapping[str, Announcement], as_of: pd.Timestamp) -> dict[str, float]:
    """Return the natural logarithm of every design's announced level over the oldest one of its line.

    The sum of the gains announced on or before `as_of` along its line. A design without an announced gain counts as
    its forerunner: makers announce a gain where there is one. One whose gain was announced later than `as_of` counts as
    the mean of the maker's gains announced by then.
    """
    levels: dict[str, float] = {}
    for design in table.values():
        before = levels[design.forerunner] if design.forerunner else 0.0
        levels[design.name] = before + log1p(_expected_gain(table, design, as_of))
    return levels


def _expected_gain(table: Mapping[str, Announcement], design: Announcement, as_of: pd.Timestamp) -> float:
    if design.gain is None or design.announced is None:
        return 0.0
    if design.announced <= as_of:
        return design.gain
    # Zero is the announcement that a design is a variant of another, which its name already tells.
    said = [
        other.gain
        for other in table.values()
        if other.maker == design.maker and other.gain and other.announced is not None and other.announced <= as_of
    ]
    return sum(said) / len(said) if said and design.gain else 0.0
