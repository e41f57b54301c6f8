"""Facts of processor families, with the exceptions of single CPU models.

`families.csv` has one row per family, `caches.csv` the caches of its cores, `exceptions.csv` has CPU models or tiers
that differ from their family. The columns of provenance are those of every table of facts (`facts.py`).
"""

from __future__ import annotations

import re
from functools import cache

import pandas as pd

from perfcast.domains.servers.processors.cpu_names import find_family, find_suffix, find_tier
from perfcast.domains.servers.processors.facts import NAMES, Fact, read_facts, read_table

NUMERIC_FACTS = tuple(row["name"] for row in NAMES if row["of_families"])
TEXT_FACTS = ("cpu_vendor", "isa", "series", "lineage", "predecessor", "process_node")


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


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def look_up_facts(
    key: str, as_of: pd.Timestamp | None = None, *, family: str | None = None
) -> dict[str, float | str | None]:
    """Return the facts of a CPU model: those of its family, by default that of its name, with its exceptions applied.

    Keys: family, tier, suffix, then TEXT_FACTS and NUMERIC_FACTS. An unknown model has a suffix only.
    Of several exceptions for one fact the first in the table counts. Facts that were not public before `as_of` are
    missing; the name tells family, tier and suffix at any time.
    """
    family = family or find_family(key)
    facts: dict[str, float | str | None] = {"family": family, "tier": find_tier(key), "suffix": find_suffix(key)}
    facts |= dict.fromkeys((*TEXT_FACTS, *NUMERIC_FACTS))
    decided: set[str] = set()
    for fact in _family_facts().get(family or "", ()):
        if fact.name not in facts or fact.name in decided or not fact.is_known(as_of):
            continue
        if fact.cpu_model:
            if not _compile(fact.cpu_model).match(key):
                continue
            decided.add(fact.name)
        facts[fact.name] = fact.number if fact.name in NUMERIC_FACTS else fact.value
    return facts
