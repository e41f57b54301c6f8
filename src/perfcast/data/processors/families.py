"""Facts of processor families, with the exceptions of single CPU models.

The facts are two tables beside this module: `families.csv` has one row per family, `exceptions.csv` has CPU models or
tiers that differ from their family. Column `source` is the publication of a fact. Column `checked` is "yes" where
channels and PCIe were compared with the catalog tables for every common CPU model, "no" where those lack the family.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from perfcast.data.processors.cpu_names import find_family, find_suffix, find_tier

NUMERIC_FACTS = (
    "generation",
    "ddr_gen",
    "channels_per_chip",
    "max_mts_1dpc",
    "simd_bits",
    "fma_units",
    "amx",
    "smt",
    "pcie_gen",
)
TEXT_FACTS = ("cpu_vendor", "isa", "series", "lineage", "predecessor", "process_node")


@dataclass(frozen=True)
class _Override:
    """Fact of the CPU models whose key starts with a pattern; it replaces the family's."""

    family: str
    pattern: re.Pattern[str]
    fact: str
    value: float | None


def read_table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of this package by column name."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _parse_number(text: str) -> float | None:
    return float(text) if text else None


@cache
def family_table() -> dict[str, dict[str, str]]:
    """Return the rows of families.csv by family name."""
    return {row["family"]: row for row in read_table("families.csv")}


@cache
def _read_exceptions() -> tuple[_Override, ...]:
    return tuple(
        _Override(row["family"], re.compile(row["key_pattern"]), row["fact"], _parse_number(row["value"]))
        for row in read_table("exceptions.csv")
    )


def look_up_facts(key: str) -> dict[str, float | str | None]:
    """Return the facts of a CPU model: those of its family with its exceptions applied.

    Keys: family, tier, suffix, then TEXT_FACTS and NUMERIC_FACTS. An unknown model has a suffix only.
    Of several exceptions for one fact the first in the table counts; one without a value keeps the family's fact.
    """
    family = find_family(key)
    facts: dict[str, float | str | None] = {"family": family, "tier": find_tier(key), "suffix": find_suffix(key)}
    row = family_table()[family] if family else {}
    facts |= {name: row.get(name) or None for name in TEXT_FACTS}
    facts |= {name: _parse_number(row.get(name, "")) for name in NUMERIC_FACTS}
    decided: set[str] = set()
    for entry in _read_exceptions():
        if entry.family == family and entry.fact not in decided and entry.pattern.match(key):
            decided.add(entry.fact)
            if entry.value is not None:
                facts[entry.fact] = entry.value
    return facts
