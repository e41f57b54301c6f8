"""Screening of the CPU2006 dump: text rows to typed rows, and the reasons to quarantine a row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from perfcast.datasets._spec_cpu2017_rows import MAX_CORES_PER_CHIP, THREADS_PER_CORE, Quarantine, reject_untyped
from perfcast.parsing.coverage import Parsed, parse_column
from perfcast.parsing.scalars import Scalar, parse_month, parse_number
from perfcast.parsing.text import normalize

RAW_COLUMNS = (
    "Benchmark",
    "Hardware Vendor",
    "System",
    "Result",
    "Baseline",
    "Cores",
    "Chips",
    "Cores Per Chip",
    "Threads Per Core",
    "Processor",
    "Processor MHz",
    "Processor Characteristics",
    "CPU(s) Orderable",
    "Auto Parallelization",
    "Base Pointer Size",
    "Peak Pointer Size",
    "1st Level Cache",
    "2nd Level Cache",
    "3rd Level Cache",
    "Other Cache",
    "Memory",
    "Operating System",
    "File System",
    "Compiler",
    "HW Avail",
    "SW Avail",
    "Tested By",
    "Test Sponsor",
    "Test Date",
    "Published",
    "Updated",
)
"""Required columns of the dump."""

SUITES = {
    "CINT2006rate": "CINT2006rate",
    "CFP2006rate": "CFP2006rate",
    "CINT2006": "CINT2006speed",
    "CFP2006": "CFP2006speed",
}
"""The dump's `Benchmark` -> suite; the dump omits the word speed."""

FIRST_MONTH = pd.Timestamp(2006, 8, 1)
"""Month in which SPEC released CPU2006; no result is older."""

FIRST_TEST = pd.Timestamp(2006, 1, 1)
"""First possible test, on a release candidate; an older month is a typing error."""

_DEFECTS = {
    "suite": ("Benchmark", "unknown_suite"),
    "base_score": ("Baseline", "score_not_numeric"),
    "peak_score": ("Result", "score_not_numeric"),
    "cores": ("Cores", "count_not_numeric"),
    "chips": ("Chips", "count_not_numeric"),
    "cores_per_chip_stated": ("Cores Per Chip", "count_not_numeric"),
    "threads_per_core": ("Threads Per Core", "count_not_numeric"),
    "base_mhz": ("Processor MHz", "count_not_numeric"),
    "published_month": ("Published", "date_impossible"),
}
"""Typed column -> its raw column, and the reason where only that column is invalid."""


def _parse_suite(text: str) -> Scalar[str]:
    return Scalar(SUITES.get(normalize(text)))


_OTHER_THAN_NUMBERS: dict[str, Callable[[str], Parsed]] = {"Benchmark": _parse_suite, "Published": parse_month}
TYPED: dict[str, tuple[str, Callable[[str], Parsed]]] = {
    name: (column, _OTHER_THAN_NUMBERS.get(column, partial(parse_number, low=0)))
    for name, (column, _) in _DEFECTS.items()
}
"""Typed column -> its raw column and parser."""


def screen_rows(raw: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    """Return the rows that are results, with typed columns; quarantine the others.

    Shapes: `raw` has RAW_COLUMNS as text and `line`. The result adds the columns of TYPED, `result_id`, `line_in_file`
    and `identical`, which marks repetitions of an earlier row.
    """
    typed = {name: parse_column(raw[column], parse)["value"] for name, (column, parse) in TYPED.items()}
    frame = raw.assign(**typed, line_in_file=raw["line"])
    frame["published_month"] = pd.to_datetime(frame["published_month"])
    # The dump has no identifier. Its lines identify rows, because the file's checksum is verified.
    frame["result_id"] = "cpu2006-" + frame["line"].map("{:05d}".format)
    frame["identical"] = frame.duplicated(list(RAW_COLUMNS))
    frame = reject_untyped(frame, quarantine, _DEFECTS)
    early = frame["published_month"] < FIRST_MONTH
    frame = quarantine.reject(frame, early, "date_impossible", "Published " + frame["Published"])
    frame = quarantine.reject(frame, frame["base_score"] == 0, "no_score", frame["Processor"])
    return quarantine.reject(frame, ~_mark_possible_counts(frame), "impossible_counts", _describe_counts(frame))


def _mark_possible_counts(frame: pd.DataFrame) -> pd.Series:
    """Mark the rows with possible counts; fewer enabled cores than installed are possible."""
    cores, chips, per_chip = frame["cores"], frame["chips"], frame["cores_per_chip_stated"]
    whole = (cores % 1 == 0) & (chips % 1 == 0) & (per_chip % 1 == 0)
    enough = (cores >= 1) & (chips >= 1) & (per_chip <= MAX_CORES_PER_CHIP) & (per_chip >= 1)
    fits = cores <= chips * per_chip.replace(0, np.nan)
    return whole & enough & fits & frame["threads_per_core"].isin(THREADS_PER_CORE)


def _describe_counts(frame: pd.DataFrame) -> pd.Series:
    text: pd.Series = (
        frame["Cores"] + " cores, " + frame["Chips"] + " chips, " + frame["Cores Per Chip"] + " cores per chip, "
        + frame["Threads Per Core"] + " threads per core"
    )  # fmt: skip
    return text
