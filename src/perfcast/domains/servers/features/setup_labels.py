"""Labels that errors are reported by: core design, memory setup and compiler. No predictor reads them."""

from __future__ import annotations

import re

import numpy as np

from perfcast.domains.servers.processors.announcements import find_core
from perfcast.features.feature_math import arrays, map_distinct
from perfcast.schema.table import Column, Kind, Role, Table, Tag

REQUIRES = ("family", "ddr_gen", "mem_eff_mts", "dimms_per_channel", "compiler_vendor", "compiler_major_minor")

LABELS_ONLY = True
"""Predictions of described machines do without this module."""

_PER_CHANNEL = ("empty channels", "1 a channel", "1 or 2 a channel", "2 a channel")
_MORE = "more than 2 a channel"
_FIRST_NUMBER = re.compile(r"\d+")


def derive(table: Table) -> Table:
    """Append the labels. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    memory = _label_memory(frame["ddr_gen"], frame["mem_eff_mts"], frame["dimms_per_channel"])
    compiler = _label_compiler(frame["compiler_vendor"], frame["compiler_major_minor"])
    labels = [
        (_label("generation", "design of the processor's cores"), map_distinct(find_core, frame["family"])),
        (_label("memory_setup", "DDR generation, effective MT/s, DIMMs per channel"), memory),
        (_label("compiler", "C/C++ compiler with the first number of its version"), compiler),
    ]
    return table.with_columns([label for label in labels if label[0].name not in table.frame])


def _label(name: str, meaning: str) -> Column:
    return Column(name, Kind.CATEGORICAL, Role.PROVENANCE, "provenance", "", meaning, tags=(Tag.SLICE,))


def _label_memory(ddr: np.ndarray, rate: np.ndarray, per_channel: np.ndarray) -> np.ndarray:
    """Return labels such as "DDR5-4800, 1 a channel"; missing where one of the three is."""
    setups = np.column_stack([ddr, rate, per_channel])
    known = ~np.isnan(setups).any(axis=1)
    kinds = np.select(
        [
            per_channel < 1,
            per_channel == 1,
            per_channel < 2,
            per_channel == 2,
        ],
        _PER_CHANNEL,
        _MORE,
    )
    labels = np.full(len(ddr), None, dtype=object)
    rows = zip(
        ddr[known].tolist(),
        rate[known].tolist(),
        kinds[known].tolist(),
        strict=True,
    )
    labels[known] = [f"DDR{int(generation)}-{int(speed)}, {kind}" for generation, speed, kind in rows]
    return labels


def _label_compiler(vendor: np.ndarray, version: np.ndarray) -> np.ndarray:
    """Return labels such as "AOCC 4"; missing where one of the two is."""

    def label(vendor: str, version: str) -> str | None:
        first = _FIRST_NUMBER.match(version)
        return f"{vendor} {first[0]}" if first else None

    return map_distinct(label, vendor, version)
