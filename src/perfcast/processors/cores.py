"""Processor cores: which core a family has, and the gain per clock that its maker announced over the one before.

The facts are `cores.csv` beside this module, one row per core design: the core it follows, the gain in instructions per
clock that the maker announced (percent, average over workloads), the day it was said, and where. They are as remembered
from those occasions, not read off the documents again. A blank gain is "nothing was announced". Nothing in the table is
a measured result, and whoever asks as of a day is told nothing that was said later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log1p

import pandas as pd

from perfcast.processors.families import family_table, read_table


@dataclass(frozen=True)
class Core:
    """One core design: its maker, the core it follows, and the announced gain (fraction) with its day."""

    name: str
    maker: str
    forerunner: str | None
    gain: float | None
    announced: pd.Timestamp | None
    said: str


@cache
def core_table() -> Mapping[str, Core]:
    """Return the rows of cores.csv by core, every forerunner before its followers."""
    return {
        row["core"]: Core(
            row["core"],
            row["maker"],
            row["forerunner"] or None,
            float(row["gain_percent"]) / 100 if row["gain_percent"] else None,
            pd.Timestamp(row["announced"]) if row["announced"] else None,
            row["said"],
        )
        for row in read_table("cores.csv")
    }


def core_of(family: str | None) -> str | None:
    """Return the core of a processor family, None where the table does not say."""
    return family_table().get(family or "", {}).get("core") or None


@cache
def ancestry(core: str) -> tuple[str, ...]:
    """Return a core and those it follows, the oldest first. Raises: KeyError for a core not in the table."""
    found = core_table()[core]
    return (*(ancestry(found.forerunner) if found.forerunner else ()), core)


def announced_index(as_of: pd.Timestamp) -> dict[str, float]:
    """Return the natural logarithm of every core's performance per clock over the oldest core of its line.

    The sum of the gains announced on or before `as_of` along its ancestry. A core without an announced gain counts as
    its forerunner: makers announce a gain where there is one. One whose gain was announced later than `as_of` counts as
    the mean of the maker's gains announced by then.
    """
    index: dict[str, float] = {}
    for core in core_table().values():
        before = index[core.forerunner] if core.forerunner else 0.0
        index[core.name] = before + log1p(_expected_gain(core, as_of))
    return index


def _expected_gain(core: Core, as_of: pd.Timestamp) -> float:
    if core.gain is None or core.announced is None:
        return 0.0
    if core.announced <= as_of:
        return core.gain
    # Zero is the announcement that a core is a variant of another, which its name already tells.
    said = [
        other.gain
        for other in core_table().values()
        if other.maker == core.maker and other.gain and other.announced is not None and other.announced <= as_of
    ]
    return sum(said) / len(said) if said and core.gain else 0.0
