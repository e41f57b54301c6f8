"""Facts of processors: one schema for every table of this package and for the table of a user, and facts of families.

A fact has a CPU model or a family (for `cores.csv` a core, for `processes.csv` a process), a name, a value, a unit, the
day from which it was public, its source and a quality. Tables are wide, with one column per fact, or long, with the
columns `fact`, `value` and `unit`. A cell without a value states nothing. `families.csv` has one row per family,
`caches.csv` the caches of its cores, `exceptions.csv` has CPU models or tiers that differ from their family.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pandas as pd

from perfcast import domains
from perfcast.domains.servers.processors.cpu_names import find_family, find_suffix, find_tier

SUBJECTS = ("cpu_model", "family", "core", "process")
"""Columns that name what a fact is about; a long table has the first two."""
PROVENANCE = ("known_from", "source", "quality", "note")
QUALITIES = {0: "as remembered", 1: "one source", 2: "two sources that agree, or compared with lists of CPU models"}

NAMES = domains.read_table(__package__, "fact_names.csv")
"""Numerical facts: unit, smallest and largest plausible value, and 1 for whole numbers and for facts of families."""
UNITS = {row["name"]: row["unit"] for row in NAMES}
"""Units of the numerical facts; "" for counts."""
LIMITS = {row["name"]: (float(row["low"]), float(row["high"])) for row in NAMES if row["low"]}
"""Smallest and largest plausible value of a numerical fact."""
NUMERIC_FACTS = tuple(row["name"] for row in NAMES if row["of_families"])
THREADS_PER_CORE = (1, 2, 4, 8)
"""Threads that a core may have."""
TEXT_FACTS = ("cpu_vendor", "isa", "series", "lineage", "predecessor", "process_node")


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
    return domains.read_table(__package__, name)


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
        shared = (
            known_from,
            row.get("source") or "",
            int(row.get("quality") or 0),
        )
        if row.get("fact"):
            yield Fact(cpu_model, family, row["fact"], row["value"], row.get("unit") or "", *shared)
            continue
        for name, value in row.items():
            if value and name not in (
                "cpu_model",
                subject,
                *PROVENANCE,
                "fact",
                "value",
                "unit",
            ):
                yield Fact(cpu_model, family, name, value, UNITS.get(name, ""), *shared)


@cache
def read_facts(name: str) -> tuple[Fact, ...]:
    """Return the facts of a table of this package."""
    return tuple(parse_facts(read_table(name)))


@cache
def family_table() -> dict[str, dict[str, str]]:
    """Return the rows of families.csv by family name."""
    return {row["family"]: row for row in read_table("families.csv")}


@cache
def find_launch(family: str) -> pd.Timestamp | None:
    """Return the day from which the facts of a family were public, None for an unknown family."""
    row = family_table().get(family)
    return pd.Timestamp(row["known_from"]) if row else None


@cache
def _family_facts() -> dict[str, tuple[Fact, ...]]:
    """Return the facts of every family, its exceptions after its own."""
    by_family: dict[str, list[Fact]] = {name: [] for name in family_table()}
    for fact in (fact for table in ("families.csv", "caches.csv", "exceptions.csv") for fact in read_facts(table)):
        by_family[fact.family].append(fact)
    return {family: tuple(facts) for family, facts in by_family.items()}


def look_up_facts(
    key: str, as_of: pd.Timestamp | None = None, *, family: str | None = None
) -> dict[str, float | str | None]:
    """Return the facts of a CPU model: those of its family, by default that of its name, with its exceptions applied.

    Keys: family, tier, suffix, then TEXT_FACTS and NUMERIC_FACTS. An unknown model has a suffix only.
    Of several exceptions for one fact the first in the table counts. Facts that were not public before `as_of` are
    missing; the name tells family, tier and suffix at any time.
    """
    family = family or find_family(key)
    facts: dict[str, float | str | None] = {
        "family": family,
        "tier": find_tier(key),
        "suffix": find_suffix(key),
    }
    facts |= dict.fromkeys((*TEXT_FACTS, *NUMERIC_FACTS))
    decided: set[str] = set()
    for fact in _family_facts().get(family or "", ()):
        if fact.name not in facts or fact.name in decided or not fact.is_known(as_of):
            continue
        if fact.cpu_model:
            if not re.match(fact.cpu_model, key):
                continue
            decided.add(fact.name)
        facts[fact.name] = fact.number if fact.name in NUMERIC_FACTS else fact.value
    return facts
