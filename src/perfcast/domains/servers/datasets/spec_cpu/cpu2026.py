"""Published SPEC CPU2026 results: one row per result; the target is the base score."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import name_suites, repair_results, screen_scores, split_suite
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.datasets.spec_cpu.repairs import Repairs
from perfcast.domains.servers.parsing.distinct_texts import map_distinct
from perfcast.domains.servers.parsing.text_normalization import compile_pattern
from perfcast.domains.servers.processors.announcements import find_core, find_core_family
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.schema.table import LEAVE_ONE_OUT

_ENERGY = ("Energy Base Result", "Energy Peak Result")
"""Columns that the extract of June 2026 lacks."""
_ENERGY_MEASURED = (
    2,
    3,
    4,
    9,
    10,
    11,
    12,
    13,
    14,
    59,
    61,
    63,
    65,
    83,
    86,
    115,
    116,
    159,
    162,
    163,
    164,
    170,
    174,
    175,
    177,
    179,
    180,
    181,
    182,
    1,
)
"""Numbers of its results with an energy above 0: most of these machines are clocked down."""
_COPIES_UNKNOWN = (15, 16)
"""Numbers of rate results whose copies nothing tells."""
_ONE_COPY = compile_pattern(r"\b1[- ]copy\b")
_MIN_SHARE = 1 / 3
"""Smallest share of the median score per core of the same core family that a rate run on all cores has."""


def _screen(frame: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    """Quarantine scores that are not those of a whole machine at full clock."""
    frame = screen_scores(frame, quarantine, first="2026-05")
    energy = [name for name in _ENERGY if name in frame]
    measured = pd.DataFrame({name: pd.to_numeric(frame[name].astype("str"), errors="coerce") for name in energy}) > 0
    rules = {
        "energy_measured": measured.any(axis=1) if energy else _have_numbers(frame, _ENERGY_MEASURED),
        "one_copy": _mark_one_copy(frame),
        "copies_unknown": _have_numbers(frame, _COPIES_UNKNOWN),
    }
    for reason, marked in rules.items():
        bad = marked[frame.index]
        frame = quarantine.reject(frame, bad, reason, frame.loc[bad, "result_id"].astype("str"))
    return frame


def _have_numbers(frame: pd.DataFrame, numbers: tuple[int, ...]) -> pd.Series:
    return frame["result_id"].astype("str").str[-5:].isin([f"{number:05d}" for number in numbers])


def _mark_one_copy(frame: pd.DataFrame) -> pd.Series:
    """Mark rate runs of one copy, as the system or the score per core says; the dump has no number of copies."""

    def find_group(processor: str) -> str:
        key = cpu_model_key(processor)
        return find_core_family(find_core(find_family(key))) or key

    is_rate = frame["suite"].astype("str").str.endswith("rate")
    groups = [frame["suite"].astype("str"), map_distinct(frame["Processor"], find_group).astype("str")]
    per_core = frame["base_score"] / frame["cores"]
    few = per_core < _MIN_SHARE * per_core.groupby(groups).transform("median")
    is_named = map_distinct(frame["System"], lambda text: _ONE_COPY.search(text) is not None)
    return is_rate & (few | is_named)


def _repair(frame: pd.DataFrame, repairs: Repairs) -> pd.DataFrame:
    frame = repair_results(frame, repairs)
    core = frame["family"].astype(object).where(frame["family"].notna(), None).map(find_core)
    return frame.assign(
        generation=core,
        core_family=core.map(find_core_family),
        q_no_family=np.where(frame["family"].isna(), 1.0, 0.0),
    )


DUMP = spec_dump.SpecDump(
    source="spec_cpu2026",
    suites=name_suites(2026),
    optional=_ENERGY,
    screen=_screen,
    derive=lambda frame: frame.assign(**split_suite(frame["suite"])),
    repair=_repair,
    near_copies=(
        "suite",
        "hw_vendor",
        "cpu_model",
        "chips",
        "threads_per_core",
        "compiler_vendor",
        "compiler_major_minor",
        "dimm_count",
        "dimm_gb",
        "mem_eff_mts",
    ),
    facts={LEAVE_ONE_OUT: True},
)

build = DUMP.build
pack = DUMP.pack
