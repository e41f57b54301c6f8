"""Published SPEC CPU2017 results: one row per result; the target is the base score."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu import repairs as repair
from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.parsing.distinct_texts import map_distinct
from perfcast.domains.servers.parsing.software import is_under_xalanc_notice, parse_compiler
from perfcast.domains.servers.processors.facts import THREADS_PER_CORE


def name_suites(year: int) -> dict[str, str]:
    """Return the suite of every `Benchmark` of a dump; the dump omits the word speed."""
    return {
        f"C{kind}{year}{run}": f"C{kind}{year}{run or 'speed'}"
        for kind in ("INT", "FP")
        for run in ("rate", "speed", "")
    }


def screen_scores(frame: pd.DataFrame, quarantine: Quarantine, *, first: str) -> pd.DataFrame:
    """Quarantine results before the `first` month of the suite, without a score, and with impossible counts."""
    early = frame["published_month"] < pd.Timestamp(first)
    frame = quarantine.reject(
        frame, early, "date_impossible", "Published " + frame.loc[early, "Published"].astype("str")
    )
    scoreless = frame["base_score"] == 0
    frame = quarantine.reject(frame, scoreless, "no_score", frame.loc[scoreless, "result_id"].astype("str"))
    cores = frame["cores"]
    chips = frame["chips"]
    per_chip = cores / chips.replace(0, np.nan)
    whole = (cores % 1 == 0) & (chips % 1 == 0) & (per_chip % 1 == 0) & (cores >= 1) & (chips >= 1)
    possible = whole & per_chip.between(1, spec_dump.MAX_CORES_PER_CHIP)
    possible &= frame["threads_per_core"].isin(THREADS_PER_CORE)
    detail = spec_dump.describe_counts(frame[~possible], ["cores", "chips", "threads_per_core"])
    return quarantine.reject(frame, ~possible, "impossible_counts", detail)


def split_suite(suite: pd.Series) -> dict[str, pd.Series]:
    """Return the columns metric (rate or speed) and domain (int or fp) of suite names."""
    return {
        "metric": map_distinct(suite, lambda name: "rate" if name.endswith("rate") else "speed"),
        "domain": map_distinct(suite, lambda name: "int" if name.startswith("CINT") else "fp"),
    }


def _derive(frame: pd.DataFrame) -> pd.DataFrame:
    notice = map_distinct(frame["Compiler"], lambda text: is_under_xalanc_notice("CINT", parse_compiler(text)))
    integer = frame["suite"].str.startswith("CINT")
    return frame.assign(**split_suite(frame["suite"]), xalanc_notice=(integer & notice).astype("float64"))


def repair_results(frame: pd.DataFrame, repairs: repair.Repairs) -> pd.DataFrame:
    """Repair known errors of rows with joined facts, and add the flags."""
    frame["cores_per_chip_of_cpu_model"] = repair.find_modal_cores(frame)
    repair.repair_cores(frame, repairs)
    repair.repair_caches(frame, repairs)
    repair.repair_memory(frame, repairs)
    repair.repair_dates(frame, repairs)
    repair.repair_unstated(frame, repairs)
    repair.add_flags(frame)
    return frame


DUMP = spec_dump.SpecDump(
    source="spec_cpu2017",
    suites=name_suites(2017),
    screen=partial(screen_scores, first="2017-06"),
    derive=_derive,
    repair=repair_results,
)
COLUMNS = DUMP.columns
"""Standard columns in table order."""

build = DUMP.build
pack = DUMP.pack
