"""Facts of processors: one schema for every table of this package and for the table of a user.

A fact has a CPU model or a family (for `cores.csv` a core, for `processes.csv` a process), a name, a value, a unit, the
day from which it was public, its source and a quality. Tables are wide, with one column per fact, or long, with the
columns `fact`, `value` and `unit`. A cell without a value states nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pandas as pd

from perfcast.domains.servers import data_tables

SUBJECTS = ("cpu_model", "family", "core", "process")
"""Columns that name what a fact is about; a long table has the first two."""
PROVENANCE = ("known_from", "source", "quality", "note")
QUALITIES = {0: "as remembered", 1: "one source", 2: "two sources that agree, or compared with the catalog tables"}

NAMES = data_tables.read_table(__package__, "fact_names.csv")
"""Numerical facts: unit, smallest and largest plausible value, and 1 for whole numbers and for facts of families."""
UNITS = {row["name"]: row["unit"] for row in NAMES}
"""Units of the numerical facts; "" for counts."""
LIMITS = {row["name"]: (float(row["low"]), float(row["high"])) for row in NAMES if row["low"]}
"""Smallest and largest plausible value of a numerical fact."""


@dataclass(frozen=True)
class Fact:
    """One fact. `cpu_model` is a key, or "" for a fact of a family; in `exceptions.csv` it is a pattern of keys."""

    cpu_model: str
    family: str
    name: str
    value: str
    unit: str
    known_from: pd.Timestamp | None
    source: str
    quality: int

    @property
    def number(self) -> float | None:
        """Return the value as a number, None for a text."""
        return float(self.value) if self.name in UNITS else None

    def is_known(self, as_of: pd.Timestamp | None) -> bool:
        """Return whether the fact was public before a day; without a day, and for an undated fact, it counts."""
        return as_of is None or self.known_from is None or self.known_from < as_of


def read_table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of this package by column name."""
    return data_tables.read_table(__package__, name)


def parse_facts(rows: Iterable[Mapping[str, str]]) -> Iterator[Fact]:
    """Yield the facts of rows of a wide or a long table.

    Raises: ValueError for a day or a quality that is none.
    """
    for row in rows:
        cpu_model = row.get("cpu_model") or ""
        # a family has a core, and a core has a process, as facts
        subject = next((name for name in SUBJECTS[1:] if row.get(name)), "family")
        family = row.get(subject) or ""
        known_from = pd.Timestamp(row["known_from"]) if row.get("known_from") else None
        shared = (known_from, row.get("source") or "", int(row.get("quality") or 0))
        if row.get("fact"):
            yield Fact(cpu_model, family, row["fact"], row["value"], row.get("unit") or "", *shared)
            continue
        for name, value in row.items():
            if value and name not in ("cpu_model", subject, *PROVENANCE, "fact", "value", "unit"):
                yield Fact(cpu_model, family, name, value, UNITS.get(name, ""), *shared)


@cache
def read_facts(name: str) -> tuple[Fact, ...]:
    """Return the facts of a table of this package."""
    return tuple(parse_facts(read_table(name)))
