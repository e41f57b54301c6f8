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

UNITS = {
    "cores_per_chip": "",
    "base_mhz": "MHz",
    "max_turbo_mhz": "MHz",
    "all_core_turbo_mhz": "MHz",
    "l1i_kb": "KiB",
    "l1d_kb": "KiB",
    "l2_kb_per_core": "KiB",
    "l3_mb_per_chip": "MiB",
    "tdp_w": "W",
    "max_sockets": "",
    "list_price_usd": "USD",
    "generation": "",
    "ddr_gen": "",
    "channels_per_chip": "",
    "max_mts_1dpc": "MT/s",
    "max_mts_2dpc": "MT/s",
    "mrdimm_mts": "MT/s",
    "simd_bits": "bit",
    "fma_units": "",
    "amx": "",
    "smt": "",
    "pcie_gen": "",
    "gain_percent": "%",
}
"""Units of the numerical facts; "" for counts."""
LIMITS = {
    "cores_per_chip": (1, 1024),
    "base_mhz": (800, 6500),
    "max_turbo_mhz": (800, 7000),
    "all_core_turbo_mhz": (800, 7000),
    "l1i_kb": (4, 1024),
    "l1d_kb": (4, 1024),
    "l2_kb_per_core": (64, 16384),
    "l3_mb_per_chip": (0, 4096),
    "tdp_w": (5, 2000),
    "max_sockets": (1, 64),
    "list_price_usd": (1, 100_000),
    "ddr_gen": (1, 6),
    "channels_per_chip": (1, 32),
    "max_mts_1dpc": (400, 12800),
    "max_mts_2dpc": (400, 12800),
    "mrdimm_mts": (6400, 25600),
    "simd_bits": (64, 2048),
    "fma_units": (0, 8),
    "amx": (0, 1),
    "smt": (1, 8),
    "pcie_gen": (1, 8),
}
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
