"""Complete a server's description by its processor's name and by arithmetic, as the published results are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.datasets.spec_cpu2017 import CATALOGUE, join_processors
from perfcast.processors.catalogue import own_catalogue, read_catalogue
from perfcast.processors.names import part_id, part_key

ALIASES = {"processor": "part_key"}
"""Other names of columns in a file of machines."""

_ARCHITECTURE = {"x86": "x86_64", "arm": "aarch64"}


def complete_part(frame: pd.DataFrame, raw: Mapping[str, Path]) -> pd.DataFrame:
    """Fill missing cells with what the family tables and the processor catalogue know of a part; given values win.

    Shapes: the answer has the rows and columns of `frame`, which has every standard column. `raw` maps the ingested
    sources to their folders; without the catalogue only the family tables are asked. Processor names are normalised.
    """
    named = frame.assign(part_key=frame["part_key"].map(part_key, na_action="ignore"))
    facts = _part_facts(named["part_key"], raw)
    return _fill(named, {**facts, "part_id": named["part_key"].map(part_id, na_action="ignore")})


def complete_machine(frame: pd.DataFrame) -> pd.DataFrame:
    """Fill missing cells with what the other cells of the same row imply; given values win.

    Shapes: the answer has the rows and columns of `frame`, which has every standard column.
    """
    filled = _fill(frame, {"cores_per_chip_part": frame["cores_enabled_total"] / frame["chips"]})
    rate = filled["mem_running_mts"].fillna(filled["mem_rated_mts"])
    return _fill(
        filled,
        {
            "cores_enabled_total": filled["cores_per_chip_part"] * filled["chips"],
            "mem_total_gb": filled["dimm_count"] * filled["dimm_gb"],
            # Memory runs no faster than the processor drives it, unless the limit is unknown.
            "mem_eff_mts": pd.Series(np.fmin(rate, filled["mem_max_mts_1dpc"]), frame.index).where(rate.notna()),
            "arch": filled["isa"].map(_ARCHITECTURE),
        },
    )


def _part_facts(parts: pd.Series, raw: Mapping[str, Path]) -> dict[str, pd.Series]:
    """Return what is known of each row's part, by standard column."""
    named = parts.dropna()
    if named.empty:
        return {}
    catalogue = read_catalogue(raw[CATALOGUE]) if CATALOGUE in raw else own_catalogue()
    known = join_processors(pd.DataFrame({"part_key": named, "cores": np.nan, "chips": np.nan}), catalogue)
    clock = named.map(catalogue.lookup(named)["base_mhz"])
    known = known.drop(columns="part_key").assign(
        base_mhz=clock, cores_per_chip_part=known["catalogue_cores"], ddr_gen=known["family_ddr_gen"]
    )
    return {str(name): values.reindex(parts.index) for name, values in known.items()}


def _fill(frame: pd.DataFrame, known: Mapping[str, pd.Series]) -> pd.DataFrame:
    """Fill the missing cells of the columns that the frame has."""
    return frame.assign(
        **{name: frame[name].where(frame[name].notna(), values) for name, values in known.items() if name in frame}
    )
