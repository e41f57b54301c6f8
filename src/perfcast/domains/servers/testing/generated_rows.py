"""Rows of generated files, made of tables of texts, and the processors that the generated sources share.

Such a table is a CSV file of this package. A line has a column, a condition and a text with values in braces, as
`str.format` reads it. Of several lines for a column the first one whose conditions hold counts. Conditions are joined
by semicolons: `family=Rome|Milan` (one of these), `year<2020`, `number%9=0`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from perfcast.domains import read_table
from perfcast.domains.servers.processors.cpu_models import look_up_models
from perfcast.domains.servers.processors.cpu_names import cpu_model_key
from perfcast.domains.servers.processors.facts import look_up_facts

Row = dict[str, str]
Values = Mapping[str, Any]
Layout = dict[str, list[tuple[list[Callable[[Values], bool]], str]]]
"""Column as published -> the conditions of each text, and the text."""

_CONDITION = re.compile(r"(\w+)(?:%(\d+))?([=<>])(.*)")


@cache
def read_layout(name: str) -> Layout:
    """Return the table of texts of a kind of row, its columns in their order; `\\t` in a name is a tab."""
    layout: Layout = {}
    for row in read_table(__package__, f"{name}.csv"):
        conditions = [_compile(condition) for condition in filter(None, row["when"].split("; "))]
        layout.setdefault(row["column"].replace("\\t", "\t"), []).append((conditions, row["text"]))
    return layout


def _compile(condition: str) -> Callable[[Values], bool]:
    ((name, modulus, sign, wanted),) = _CONDITION.findall(condition)

    def holds(values: Values) -> bool:
        value = values[name] % int(modulus) if modulus else values[name]
        if sign == "=":
            return (f"{value:g}" if isinstance(value, float) else str(value)) in wanted.split("|")
        return bool(value < float(wanted) if sign == "<" else value > float(wanted))

    return holds


def make_row(layout: Layout, values: Values) -> Row:
    """Return the texts of a row by column, its name with single blanks."""
    row = {}
    for column, texts in layout.items():
        text = next(text for conditions, text in texts if all(holds(values) for holds in conditions))
        row[" ".join(column.split())] = text.format_map(values)
    return row


@dataclass(frozen=True)
class CpuModel:
    """Generated processor. Units: clock MHz; launch is (year, month)."""

    name: str
    cores: int
    mhz: int
    launch: tuple[int, int]

    @cached_property
    def key(self) -> str:
        """Join key of the CPU model."""
        return cpu_model_key(self.name)

    @cached_property
    def facts(self) -> dict[str, float | str | None]:
        """Facts of the CPU model from the project's family tables."""
        return look_up_facts(self.key)

    def number(self, fact: str, default: float) -> float:
        """Return a numerical fact, or the default where the tables lack it."""
        value = self.facts[fact]
        return default if value is None else float(value)

    @property
    def launch_month(self) -> int:
        """Launch as year x 12 + month - 1."""
        return self.launch[0] * 12 + self.launch[1] - 1

    def _listed(self, fact: str, default: float) -> float:
        """Return a fact of the table of CPU models, or the default where it has none."""
        value = look_up_models([self.key])[fact].item()
        return default if math.isnan(value) else float(value)

    @cached_property
    def turbo_mhz(self) -> int:
        """Highest clock in MHz."""
        return round(self._listed("max_turbo_mhz", self.mhz + 1200))

    @cached_property
    def tdp_w(self) -> int:
        """Power in W, which grows with cores and clock."""
        return round(self._listed("tdp_w", round((40 + 1.1 * self.cores * (self.mhz / 2000) ** 2) / 5) * 5))

    @cached_property
    def l3_mb(self) -> float:
        """Last-level cache of the chip in MB."""
        return self._listed("l3_mb_per_chip", 2 * self.cores)

    @cached_property
    def values(self) -> dict[str, Any]:
        """Values of the texts about the CPU model."""
        return {
            **self.facts,
            "cpu": self,
            "cores": self.cores,
            "mhz": self.mhz,
            "ghz": self.mhz / 1000,
            "turbo_ghz": self.turbo_mhz / 1000,
            "ddr": int(self.number("ddr_gen", 4)),
            "limit": int(self.number("max_mts_1dpc", 3200)),
            "half_l3_mb": self.l3_mb / 2,
            "half_cores": self.cores // 2,
        }


def _read_cpu_models() -> tuple[CpuModel, ...]:
    models = []
    for row in read_table(__package__, "cpu_models.csv"):
        year, month = map(int, row["launch"].split("-"))
        models.append(
            CpuModel(
                row["name"],
                int(row["cores"]),
                int(row["mhz"]),
                (year, month),
            )
        )
    return tuple(models)


CPU_MODELS = _read_cpu_models()
"""CPU models since 2017 by launch; names of real families, so their naming rules and facts apply. One is unknown."""
