"""Labels that errors are reported by: core design, memory setup and compiler. No predictor reads them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.data.processors.announcements import find_core
from perfcast.features.feature_math import require
from perfcast.schema.table import Column, Kind, Role, Table, Tag

REQUIRES = ("family", "ddr_gen", "mem_eff_mts", "dimms_per_channel", "compiler_vendor", "compiler_major_minor")

_PER_CHANNEL = ("empty channels", "1 a channel", "1 or 2 a channel", "2 a channel")
_MORE = "more than 2 a channel"


def derive(table: Table) -> Table:
    """Append the labels. Raises ValueError when a required column is absent."""
    frame = require(table, REQUIRES)
    memory = _label_memory(frame["ddr_gen"], frame["mem_eff_mts"], frame["dimms_per_channel"])
    compiler = _label_compiler(frame["compiler_vendor"], frame["compiler_major_minor"])
    return table.with_columns(
        [
            (_label("generation", "design of the processor's cores"), _label_generation(frame["family"])),
            (_label("memory_setup", "DDR generation, effective MT/s, DIMMs per channel"), memory),
            (_label("compiler", "C/C++ compiler with the first number of its version"), compiler),
        ]
    )


def _label(name: str, meaning: str) -> Column:
    return Column(name, Kind.CATEGORICAL, Role.PROVENANCE, "provenance", "", meaning, tags=(Tag.SLICE,))


def _label_generation(family: pd.Series) -> pd.Series:
    known = {name: find_core(str(name)) for name in family.dropna().unique()}
    return family.astype("object").map(known).astype("str")


def _label_memory(ddr: pd.Series, rate: pd.Series, per_channel: pd.Series) -> pd.Series:
    """Return labels such as "DDR5-4800, 1 a channel"; missing where one of the three is."""
    kinds = np.select([per_channel < 1, per_channel == 1, per_channel < 2, per_channel == 2], _PER_CHANNEL, _MORE)
    generation, speed = (values.fillna(0).astype(int).astype("str") for values in (ddr, rate))
    texts = "DDR" + generation + "-" + speed + ", " + pd.Series(kinds, index=ddr.index)
    return texts.where(ddr.notna() & rate.notna() & per_channel.notna())


def _label_compiler(vendor: pd.Series, version: pd.Series) -> pd.Series:
    """Return labels such as "AOCC 4"; missing where one of the two is."""
    first = version.astype("str").str.extract(r"^(\d+)", expand=False)
    return (vendor.astype("str") + " " + first).where(vendor.notna() & version.notna() & first.notna())
