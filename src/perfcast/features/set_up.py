"""What errors are also reported by: core design, memory set-up and compiler in words. No predictor reads them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.data.processors.announcements import find_core
from perfcast.features.feature_math import require
from perfcast.schema.table import Column, Kind, Role, Table, Tag

REQUIRES: tuple[str, ...] = (
    *("family", "ddr_gen", "mem_eff_mts", "dimms_per_channel"),
    *("compiler_vendor", "compiler_major_minor"),
)

_PER_CHANNEL = ("empty channels", "1 a channel", "1 or 2 a channel", "2 a channel")
_MORE = "more than 2 a channel"


def derive(table: Table) -> Table:
    """Append the slices. Raises ValueError when a required column is absent."""
    frame = require(table, REQUIRES)
    return table.with_columns(
        [
            (_slice("generation", "design of the processor's cores"), _generation(frame["family"])),
            (
                _slice("memory_set_up", "DDR generation, effective MT/s, DIMMs per channel"),
                _memory(frame["ddr_gen"], frame["mem_eff_mts"], frame["dimms_per_channel"]),
            ),
            (
                _slice("compiler", "C/C++ compiler with the first number of its version"),
                _compiler(frame["compiler_vendor"], frame["compiler_major_minor"]),
            ),
        ]
    )


def _slice(name: str, meaning: str) -> Column:
    return Column(name, Kind.CATEGORICAL, Role.PROVENANCE, "provenance", "", meaning, tags=(Tag.SLICE,))


def _generation(family: pd.Series) -> pd.Series:
    known = {name: find_core(str(name)) for name in family.dropna().unique()}
    return family.astype("object").map(known).astype("str")


def _memory(ddr: pd.Series, rate: pd.Series, per_channel: pd.Series) -> pd.Series:
    """Return words such as "DDR5-4800, 1 a channel"; missing where one of the three is."""
    kinds = np.select([per_channel < 1, per_channel == 1, per_channel < 2, per_channel == 2], _PER_CHANNEL, _MORE)
    generation, speed = (values.fillna(0).astype(int).astype("str") for values in (ddr, rate))
    words = "DDR" + generation + "-" + speed + ", " + pd.Series(kinds, index=ddr.index)
    return words.where(ddr.notna() & rate.notna() & per_channel.notna())


def _compiler(vendor: pd.Series, version: pd.Series) -> pd.Series:
    """Return words such as "AOCC 4"; missing where one of the two is."""
    first = version.astype("str").str.extract(r"^(\d+)", expand=False)
    return (vendor.astype("str") + " " + first).where(vendor.notna() & version.notna() & first.notna())
