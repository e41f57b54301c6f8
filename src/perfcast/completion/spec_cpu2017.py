"""Complete a server's description by its processor's name and by arithmetic, as the published results are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.completion._server_fields import FIELDS
from perfcast.completion._server_limits import refusals, refuse
from perfcast.completion._server_variants import ADAPTED, CAPACITIES, REPLACED, WATTS, WATTS_ARE, per_processor
from perfcast.completion.base import Block
from perfcast.datasets.spec_cpu2017 import CATALOGUE, join_processors
from perfcast.processors.catalogue import read_project_catalog, read_catalogue
from perfcast.processors.names import part_id

__all__ = [
    "ADAPTED",
    "BLOCKS",
    "CAPACITIES",
    "DESIGN",
    "FIELDS",
    "NEW_PART",
    "REPLACED",
    "TASK_NAMES",
    "WATTS",
    "WATTS_ARE",
    "assume",
    "complete_machine",
    "complete_part",
    "parts",
    "per_processor",
    "refusals",
    "refuse",
]

TASK_NAMES = {
    "SPECrate2017_int_base": "CINT2017rate",
    "SPECrate2017_fp_base": "CFP2017rate",
    "SPECspeed2017_int_base": "CINT2017speed",
    "SPECspeed2017_fp_base": "CFP2017speed",
}
"""SPEC's name of a metric -> suite."""

NEW_PART = {
    "cores": ("cores_per_chip_stated", "cores_per_chip_part", "cores_enabled_total"),
    "clock": ("base_mhz",),
    "family": ("family",),
}
"""What a part that no table names must be described by at least: a word for each, and the columns that say it."""

DESIGN = "family"
"""The column that stands for all that parts of one design share: its value must be a known one."""

_ARCHITECTURE = {"x86": "x86_64", "arm": "aarch64"}

BLOCKS = (
    Block(
        "design of the processor",
        (
            *("cpu_vendor", "series", "isa", "mem_channels_per_chip", "mem_max_mts_1dpc", "simd_bits", "fma_units"),
            *("has_amx", "l1i_kb", "l1d_kb", "l2_kb_per_core", "l2_scope", "l3_slice_mb", "l3_cores_per_slice"),
            *("l3_asymmetric", "l4_mb", "pcie_gen", "process_node", "ddr_gen"),
        ),
        (("family",),),
        recent=False,
    ),
    Block("size of the processor", ("l3_mb_per_chip", "tdp_w"), (("family", "cores_per_chip_part"),), recent=False),
    Block("clocks of the processor", ("max_turbo_mhz",), (("family",),), recent=False),
    Block("processors", ("chips",), (("part_key",), ("family",), ("cpu_vendor",), ()), recent=False),
    Block(
        "compiler",
        (
            *("compiler_vendor", "compiler_major_minor", "compiler_classic", "oneapi"),
            *("mixed_fortran", "base_ptr", "parallel"),
        ),
        (("suite", "family"), ("suite", "cpu_vendor"), ("suite", "isa"), ("suite",)),
        recent=True,
    ),
    Block("threads", ("threads_per_core",), (("suite", "family"), ("suite", "cpu_vendor"), ("suite",)), recent=False),
    Block(
        "operating system",
        ("os_name", "os_version", "kernel_series", "arch", "file_system"),
        (("suite", "family"), ("suite", "cpu_vendor"), ("suite", "isa"), ("suite",)),
        recent=True,
    ),
    Block("storage", ("storage_class", "storage_gb"), (("family",), ("cpu_vendor",), ()), recent=True),
    Block(
        "memory modules",
        ("dimm_gb", "dimm_type", "ecc", "dimm_ranks", "dimm_width", "dimm_groups", "hbm_gb"),
        (("family", "chips"), ("ddr_gen", "mem_rated_mts"), ("ddr_gen",), ()),
        recent=False,
    ),
    Block(
        "system", ("hw_vendor", "orderable_min", "orderable_max"), (("family", "chips"), ("chips",), ()), recent=True
    ),
)
"""What is assumed together, in this order: later ones may ask what earlier ones filled."""


def parts(raw: Mapping[str, Path], measured: Iterable[str]) -> pd.DataFrame:
    """Return what the family tables and the processor catalogue know of every part that is listed or was measured.

    Shapes: one row per part key (index), with standard columns. `raw` maps the ingested sources to their folders;
    without the catalogue only the family tables and this project's own facts are asked.
    """
    catalogue = read_catalogue(raw[CATALOGUE]) if CATALOGUE in raw else read_project_catalog()
    named = pd.Series(sorted({*catalogue.facts.index, *measured}), dtype="str")
    known = join_processors(pd.DataFrame({"part_key": named, "cores": np.nan, "chips": np.nan}), catalogue)
    clock = named.map(catalogue.lookup(named)["base_mhz"])
    known = known.drop(columns=["cores", "chips", "cores_per_chip_stated"]).assign(
        base_mhz=clock, cores_per_chip_part=known["catalogue_cores"], ddr_gen=known["family_ddr_gen"]
    )
    return known.set_index("part_key")


def complete_part(frame: pd.DataFrame, parts: pd.DataFrame) -> pd.DataFrame:
    """Fill missing cells with what is known of a row's part; of a name that no table holds, with its family's facts.

    Shapes: the answer has the rows and columns of `frame`, which has every standard column; `parts` is `parts()`.
    """
    named = frame["part_key"].dropna()
    others = sorted(set(named) - set(parts.index))
    if others:
        asked = pd.DataFrame({"part_key": pd.Series(others, dtype="str"), "cores": np.nan, "chips": np.nan})
        ruled = join_processors(asked, read_project_catalog()).set_index("part_key")
        parts = pd.concat([parts, ruled.assign(ddr_gen=ruled["family_ddr_gen"]).reindex(columns=parts.columns)])
    facts = parts[[name for name in parts if name in frame]].reindex(frame["part_key"]).set_axis(frame.index)
    return _fill(frame, {**facts, "part_id": frame["part_key"].map(part_id, na_action="ignore")})


def complete_machine(frame: pd.DataFrame) -> pd.DataFrame:
    """Fill missing cells with what the other cells of the same row imply.

    Shapes: the answer has the rows and columns of `frame`, which has every standard column.
    """
    stated = frame["cores_per_chip_stated"]
    filled = _fill(frame, {"cores_enabled_total": stated * frame["chips"]})
    filled = _fill(
        filled,
        {"cores_per_chip_part": stated.where(stated.notna(), filled["cores_enabled_total"] / filled["chips"])},
    )
    rate = filled["mem_running_mts"].fillna(filled["mem_rated_mts"])
    return _fill(
        filled,
        {
            "cores_enabled_total": filled["cores_per_chip_part"] * filled["chips"],
            "mem_total_gb": filled["dimm_count"] * filled["dimm_gb"],
            "dimm_gb": filled["mem_total_gb"] / filled["dimm_count"],
            # Memory runs no faster than the processor drives it, unless the limit is unknown.
            "mem_eff_mts": rate.where(~(rate > filled["mem_max_mts_1dpc"]), filled["mem_max_mts_1dpc"]),
            "arch": filled["isa"].map(_ARCHITECTURE),
        },
    )


def assume(frame: pd.DataFrame, last: pd.Timestamp) -> pd.DataFrame:
    """Fill missing cells with what is usual: one module in every channel, as fast as the processor takes, today's test.

    Today is the month of the newest result: of the software after it nothing was measured.
    Shapes: the answer has the rows and columns of `frame`, which has every standard column.
    """
    today = pd.Series(last, frame.index)
    filled = _fill(
        frame,
        {
            "dimm_count": frame["chips"] * frame["mem_channels_per_chip"],
            "mem_rated_mts": frame["mem_max_mts_1dpc"],
            "test_month": today,
        },
    )
    launch = filled["launch_quarter"]
    return _fill(
        filled,
        {
            "hw_avail": launch.where(launch < filled["test_month"], filled["test_month"]),
            "sw_avail": filled["test_month"],
        },
    )


def _fill(frame: pd.DataFrame, known: Mapping[str, pd.Series]) -> pd.DataFrame:
    """Fill the missing cells of the columns that the frame has; where there is nothing to fill it is the same frame."""
    filled = {}
    for name, values in known.items():
        if name in frame:
            own = frame[name]
            missing = own.array.isna()
            if missing.any() and not values.array[missing].isna().all():
                filled[name] = own.where(~missing, values)
    return frame.assign(**filled) if filled else frame
