"""Cores of processor families, and the gains per clock and per process that their vendors announced.

`cores.csv` has one row per core design: its predecessor, the process of its servers, and the announced gain in
instructions per clock (percent, mean over workloads). `processes.csv` has one row per process: its predecessor and the
announced gain in performance at the same power. A gain per watt is converted by its cube root, because power grows
about with the cube of the clock. A row without a gain has the day on which the first product was launched: from then on
it is known that nothing was announced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log1p

import pandas as pd

from perfcast.domains.servers.processors.facts import family_table, read_table


@dataclass(frozen=True)
class Announcement:
    """Announcement of a design: vendor, predecessor, gain over it as a fraction, day and source.

    The day of a design without a gain is that of its launch.
    """

    name: str
    vendor: str
    predecessor: str | None
    gain: float | None
    announced: pd.Timestamp
    source: str


def read_announcements(file: str, key: str) -> dict[str, Announcement]:
    """Return the rows of a table of this package by its column `key`, every predecessor before its followers."""
    return {
        row[key]: Announcement(
            row[key],
            row["vendor"],
            row["predecessor"] or None,
            float(row["gain_percent"]) / 100 if row["gain_percent"] else None,
            pd.Timestamp(row["known_from"]),
            row["source"],
        )
        for row in read_table(file)
    }


def sum_announced_logs(table: Mapping[str, Announcement], as_of: pd.Timestamp) -> dict[str, float]:
    """Return the natural logarithm of every design's announced level over the oldest one of its line.

    The sum of the gains announced on or before `as_of` along its line. A design without an announced gain has the
    level of its predecessor. Before the day of a design, its gain is the mean of the gains that the vendor had
    announced by then, whether or not one was announced later.
    """
    levels: dict[str, float] = {}
    for design in table.values():
        before = levels[design.predecessor] if design.predecessor else 0.0
        levels[design.name] = before + log1p(_expected_gain(table, design, as_of))
    return levels


def _expected_gain(table: Mapping[str, Announcement], design: Announcement, as_of: pd.Timestamp) -> float:
    if design.announced <= as_of:
        return design.gain or 0.0
    # The first of a line has no gain, and a gain of zero marks a variant of another design, known from its name.
    if design.predecessor is None or design.gain == 0.0:
        return 0.0
    announced_gains = [
        other.gain
        for other in table.values()
        if other.vendor == design.vendor and other.gain and other.announced <= as_of
    ]
    return sum(announced_gains) / len(announced_gains) if announced_gains else 0.0


@cache
def core_table() -> Mapping[str, Announcement]:
    """Return the rows of cores.csv by core, every predecessor before its followers."""
    return read_announcements("cores.csv", "core")


@cache
def process_table() -> Mapping[str, Announcement]:
    """Return the rows of processes.csv by process, every predecessor before its followers."""
    return read_announcements("processes.csv", "process")


@cache
def processes_of_cores() -> Mapping[str, str]:
    """Return the process of the servers of every core for which the table states it."""
    return {row["core"]: row["process"] for row in read_table("cores.csv") if row["process"]}


def find_core(family: str | None) -> str | None:
    """Return the core of a processor family, None where the table does not state it."""
    return family_table().get(family or "", {}).get("core") or None


CORE_FAMILIES = {
    "Zen 4c": "Zen 4",
    "Zen 5c": "Zen 5",
    "Raptor Cove": "Golden Cove",
    "Crestmont": "Intel E-core",
    "Darkmont": "Intel E-core",
}
"""Core -> its family, of other cores than those named as their family: dense variants, a core on a newer process, and
efficient cores of servers."""


def find_core_family(core: str | None) -> str | None:
    """Return the family of a core: siblings that a forecast of a new core may not know."""
    return CORE_FAMILIES.get(core or "", core)


@cache
def ancestry(core: str) -> tuple[str, ...]:
    """Return a core and its predecessors, the oldest first. Raises: KeyError for a core that the table lacks."""
    predecessor = core_table()[core].predecessor
    return (*(ancestry(predecessor) if predecessor else ()), core)


def announced_index(as_of: pd.Timestamp) -> dict[str, float]:
    """Return the natural logarithm of every core's announced performance per clock over the oldest core of its line."""
    return sum_announced_logs(core_table(), as_of)


def announced_power_index(as_of: pd.Timestamp) -> dict[str, float]:
    """Return the natural logarithm of the announced performance at the same power of every core's process.

    It is relative to the oldest process of its line; cores without a process in the table are left out.
    """
    levels = sum_announced_logs(process_table(), as_of)
    return {core: levels[process] for core, process in processes_of_cores().items()}
