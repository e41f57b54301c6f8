"""Rows of the CPU2006 dump: screening with the reasons to quarantine a row, and the standard columns of the texts."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu import dump_texts
from perfcast.domains.servers.datasets.spec_cpu.dump_texts import (
    L3_FIELDS,
    MEMORY_FIELDS,
    SYSTEM_FIELDS,
    UNPARSED,
    Fields,
    Parser,
    Values,
    map_texts,
    measure_coverages,
    split_suite,
)
from perfcast.domains.servers.datasets.spec_cpu.quarantine import (
    MAX_CORES_PER_CHIP,
    THREADS_PER_CORE,
    Quarantine,
    reject_untyped,
)
from perfcast.domains.servers.parsing.cache import parse_l1, parse_l2, parse_l3, parse_other_cache
from perfcast.domains.servers.parsing.compiler import parse_older_compiler
from perfcast.domains.servers.parsing.distinct_texts import parse_column
from perfcast.domains.servers.parsing.older_memory import parse_older_memory
from perfcast.domains.servers.parsing.operating_system import parse_older_operating_system
from perfcast.domains.servers.parsing.processor_texts import parse_characteristics, parse_older_orderable
from perfcast.domains.servers.parsing.scalars import Scalar, parse_flag, parse_month, parse_number, parse_pointer_bits
from perfcast.domains.servers.parsing.text_normalization import normalize
from perfcast.inference.name_lookup import cpu_model_key

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

_FIELDS: Fields = {
    "1st Level Cache": (parse_l1, ("l1i_kb", "l1d_kb", "l1_scope")),
    "2nd Level Cache": (parse_l2, ("l2_kb", "l2_scope", "l2_kb_per_core")),
    "3rd Level Cache": (parse_l3, L3_FIELDS),
    "Other Cache": (parse_other_cache, ("l4_mb",)),
    "Memory": (parse_older_memory, MEMORY_FIELDS),
    "Operating System": (parse_older_operating_system, SYSTEM_FIELDS),
    "Compiler": (parse_older_compiler, ("compiler_vendor", "compiler_major_minor", "mixed_compilers")),
    "CPU(s) Orderable": (parse_older_orderable, ("orderable_min", "orderable_max")),
    "Processor Characteristics": (parse_characteristics, ("turbo_mhz", "turbo_off", "bus_mts")),
}
_VALUES: Values = {
    "Auto Parallelization": (parse_flag, "parallel"),
    "Base Pointer Size": (parse_pointer_bits, "base_ptr"),
    "Peak Pointer Size": (parse_pointer_bits, "peak_ptr"),
    "Test Date": (parse_month, "test_month"),
    "HW Avail": (parse_month, "hw_avail"),
    "SW Avail": (parse_month, "sw_avail"),
    "Updated": (parse_month, "updated"),
}
_CORE_COUNT = re.compile(r"^(?:dual|quad)-core (?=intel|amd)")
_SPELLINGS = (
    (re.compile(r"\bpentium dual core\b"), "pentium dual-core"),
    (re.compile(r"\be7- (?=\d)"), "e7-"),
    (re.compile(r" extreme edition$"), ""),
    (re.compile(r"^(xeon 5148) lv$"), r"\1"),
    (re.compile(r"\bultrasparc-"), "ultrasparc "),
    (re.compile(r"^(core 2) duo (?=x6800)"), r"\1 extreme "),
    (re.compile(r"^(core 2) quad (?=qx)"), r"\1 extreme "),
)
"""Spelling of a processor name -> the spelling of the catalog."""


def _parse_suite(text: str) -> Scalar[str]:
    return Scalar(SUITES.get(normalize(text)))


_OTHER_THAN_NUMBERS: dict[str, Parser] = {"Benchmark": _parse_suite, "Published": parse_month}
TYPED: dict[str, tuple[str, Parser]] = {
    name: (column, _OTHER_THAN_NUMBERS.get(column, partial(parse_number, low=0)))
    for name, (column, _) in _DEFECTS.items()
}
"""Typed column -> its raw column and parser."""

RAW_COLUMNS = (*(column for column, _ in TYPED.values()), *_FIELDS, *_VALUES, *UNPARSED)
"""Columns that are read."""


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


def parse_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the standard columns of the text columns; every distinct text is parsed once."""
    return dump_texts.parse_texts(frame, _FIELDS, _VALUES).assign(
        **split_suite(frame["suite"]),
        cpu_model=map_texts(frame["Processor"], older_cpu_model_key),
        file_system=map_texts(frame["File System"], _parse_file_system),
    )


def older_cpu_model_key(name: str) -> str:
    """Return the join key of a processor name in a spelling of 2006 to 2014 (see `cpu_model_key`)."""
    folded = " ".join(name.casefold().split())
    key = cpu_model_key(_CORE_COUNT.sub("", folded))
    for pattern, replacement in _SPELLINGS:
        key = pattern.sub(replacement, key)
    return key


def parse_coverage(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the coverage of each raw column; see `measure_coverages`."""
    parsers = {column: parse for column, (parse, _) in (*_FIELDS.items(), *_VALUES.items())}
    return measure_coverages(frame, parsers | dict(TYPED.values()))


def _parse_file_system(text: str) -> str | None:
    """Return the first word of a file system text, without the remarks that follow."""
    words = text.strip().casefold().replace(",", " ").split()
    return words[0] if words and not words[0].startswith("(") else None


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
