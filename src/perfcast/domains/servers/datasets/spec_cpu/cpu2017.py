"""Published SPEC CPU2017 results: one row per result; the target is the base score."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.domains.servers.data_tables import read_columns
from perfcast.domains.servers.datasets.spec_cpu import repairs as repair
from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import L3_FIELDS, MEMORY_FIELDS, SYSTEM_FIELDS, map_texts
from perfcast.domains.servers.parsing.cache import parse_l1, parse_l2, parse_l3, parse_other_cache
from perfcast.domains.servers.parsing.compiler import is_under_xalanc_notice, parse_compiler
from perfcast.domains.servers.parsing.distinct_texts import map_distinct
from perfcast.domains.servers.parsing.memory import parse_memory
from perfcast.domains.servers.parsing.operating_system import parse_operating_system
from perfcast.domains.servers.parsing.processor_texts import parse_orderable
from perfcast.domains.servers.parsing.scalars import (
    parse_disclosure,
    parse_flag,
    parse_month,
    parse_number,
    parse_pointer_bits,
)
from perfcast.domains.servers.parsing.storage import parse_storage
from perfcast.domains.servers.processors.cpu_names import cpu_model_key

COLUMNS = read_columns(__package__, "columns.csv", "cpu2017")
"""Standard columns in table order."""

SUITES = {
    **{f"C{kind}2017{run}": f"C{kind}2017{run}" for kind in ("INT", "FP") for run in ("rate", "speed")},
    **{f"C{kind}2017": f"C{kind}2017speed" for kind in ("INT", "FP")},
}
"""The dump's `Benchmark` -> suite; the dump omits the word speed."""

_parse_number = partial(parse_number, low=0)


def screen_scores(
    frame: pd.DataFrame, quarantine: Quarantine, *, first: str, per_chip: pd.Series, counts: Mapping[str, str]
) -> pd.DataFrame:
    """Quarantine results before the `first` month of the suite, without a score, and with impossible counts.

    Args:
        per_chip: Cores per chip; fewer enabled cores than installed are possible.
        counts: Raw column of a count -> its words in the detail of a rejection.
    """
    early = frame["published_month"] < pd.Timestamp(first)
    frame = quarantine.reject(
        frame, early, "date_impossible", "Published " + frame.loc[early, "Published"].astype("str")
    )
    scoreless = frame["base_score"] == 0
    named = "result_id" if "Disclosure" in frame else "Processor"
    frame = quarantine.reject(frame, scoreless, "no_score", frame.loc[scoreless, named].astype("str"))
    cores, chips, per_chip = frame["cores"], frame["chips"], per_chip[frame.index]
    whole = (cores % 1 == 0) & (chips % 1 == 0) & (per_chip % 1 == 0) & (cores >= 1) & (chips >= 1)
    possible = whole & per_chip.between(1, spec_dump.MAX_CORES_PER_CHIP) & (cores <= chips * per_chip)
    possible &= frame["threads_per_core"].isin(spec_dump.THREADS_PER_CORE)
    stated = frame.loc[~possible, list(counts)].astype("str")
    words = pd.DataFrame({word: stated[column] + f" {word}" for column, word in counts.items()})
    return quarantine.reject(frame, ~possible, "impossible_counts", spec_dump.join_texts(words, ", "))


def split_suite(suite: pd.Series) -> dict[str, pd.Series]:
    """Return the columns metric (rate or speed) and domain (int or fp) of suite names."""
    return {
        "metric": map_texts(suite, lambda name: "rate" if name.endswith("rate") else "speed"),
        "domain": map_texts(suite, lambda name: "int" if name.startswith("CINT") else "fp"),
    }


def screen_results(frame: pd.DataFrame, quarantine: Quarantine, first: str = "2017-06") -> pd.DataFrame:
    """Screen the results of a dump that does not state cores per chip; see `screen_scores`."""
    counts = {"# Cores": "cores", "# Chips": "chips", "# Enabled Threads Per Core": "threads per core"}
    per_chip = frame["cores"] / frame["chips"].replace(0, np.nan)
    return screen_scores(frame, quarantine, first=first, per_chip=per_chip, counts=counts)


def _derive(frame: pd.DataFrame) -> pd.DataFrame:
    notice = map_distinct(frame["Compiler"], lambda text: is_under_xalanc_notice("CINT", parse_compiler(text)))
    integer = frame["suite"].str.startswith("CINT")
    return frame.assign(**split_suite(frame["suite"]), xalanc_notice=(integer & notice).astype("float64"))


def _repair(frame: pd.DataFrame, repairs: repair.Repairs) -> pd.DataFrame:
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
    columns=COLUMNS,
    required={
        "suite": ("Benchmark", spec_dump.parse_suite(SUITES), "unknown_suite"),
        "base_score": ("Base Result", _parse_number, "score_not_numeric"),
        "peak_score": ("Peak Result", _parse_number, "score_not_numeric"),
        "cores": ("# Cores", _parse_number, "count_not_numeric"),
        "chips": ("# Chips", _parse_number, "count_not_numeric"),
        "threads_per_core": ("# Enabled Threads Per Core", _parse_number, "count_not_numeric"),
        "base_mhz": ("Processor MHz", _parse_number, "count_not_numeric"),
        "published_month": spec_dump.PUBLISHED,
    },
    fields={
        "1st Level Cache": (parse_l1, ("l1i_kb", "l1d_kb")),
        "2nd Level Cache": (parse_l2, ("l2_kb", "l2_scope", "l2_kb_per_core")),
        "3rd Level Cache": (parse_l3, L3_FIELDS),
        "Other Cache": (parse_other_cache, ("l4_mb",)),
        "Memory": (parse_memory, MEMORY_FIELDS),
        "Storage": (parse_storage, ("storage_class", "storage_gb")),
        "Operating System": (parse_operating_system, SYSTEM_FIELDS),
        "Compiler": (
            parse_compiler,
            ("compiler_vendor", "compiler_major_minor", "compiler_classic", "oneapi", "mixed_fortran"),
        ),
        "CPU(s) Orderable": (parse_orderable, ("orderable_min", "orderable_max")),
    },
    values={
        "Parallel": (parse_flag, "parallel"),
        "Base Pointer Size": (parse_pointer_bits, "base_ptr"),
        "Peak Pointer Size": (parse_pointer_bits, "peak_ptr"),
        "Energy Base Result": (_parse_number, "energy_base"),
        "Test Date": (parse_month, "test_month"),
        "HW Avail": (parse_month, "hw_avail"),
        "SW Avail": (parse_month, "sw_avail"),
        "Updated": (parse_month, "updated"),
    },
    names={
        **spec_dump.name_companies("Hardware Vendor"),
        "cpu_model": ("Processor", cpu_model_key),
        "file_system": ("File System", lambda text: text.strip().casefold() or None),
    },
    identity=parse_disclosure,
    uncovered=frozenset({"Benchmark"}),
    plain=("Disclosure",),
    screen=screen_results,
    derive=_derive,
    repair=_repair,
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the dump; see `spec_dump.build`."""
    return spec_dump.build(DUMP, raw, options)
