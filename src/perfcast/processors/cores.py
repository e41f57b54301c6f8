"""Processor cores: which core a family has, and the gains per clock and per process that their makers announced.

The facts are two tables beside this module. `cores.csv` has one row per core design: the core it follows, the process
its servers are made in, and the gain in instructions per clock that the maker announced (percent, average over
workloads), with the day and the place. `processes.csv` has one row per process: the one it follows and the announced
gain in performance at the same power; a gain said per watt is brought to that by its cube root, for power grows about
with the cube of the clock (as in features/_physics.py). See `_announcements.py` for what they claim and what not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pandas as pd

from perfcast.processors._announcements import Announcement, announced_logs, read_announcements
from perfcast.processors.families import family_table, read_table


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
    """Return the process that the servers of a core are made in, for the cores of which the table says so."""
    return {row["core"]: row["process"] for row in read_table("cores.csv") if row["process"]}


def core_of(family: str | None) -> str | None:
    """Return the core of a processor family, None where the table does not say."""
    return family_table().get(family or "", {}).get("core") or None


@cache
def ancestry(core: str) -> tuple[str, ...]:
    """Return a core and those it follows, the oldest first. Raises: KeyError for a core not in the table."""
    found = core_table()[core]
    return (*(ancestry(found.predecessor) if found.predecessor else ()), core)


def announced_index(as_of: pd.Timestamp) -> dict[str, float]:
    """Return the natural logarithm of every core's announced performance per clock over the oldest core of its line."""
    return announced_logs(core_table(), as_of)


def announced_power_index(as_of: pd.Timestamp) -> dict[str, float]:
    """Return the natural logarithm of what every core's process was announced to give at the same power.

    Over the oldest process of its line, by core; cores whose process the table does not name are left out.
    """
    levels = announced_logs(process_table(), as_of)
    return {core: levels[process] for core, process in processes_of_cores().items()}
