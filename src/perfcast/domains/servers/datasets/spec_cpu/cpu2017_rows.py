"""Rows of the CPU2017 dump: screening with the reasons to quarantine a row, and the standard columns of the texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.strict_csv import CsvRows
from perfcast.domains.servers.datasets.spec_cpu import dump_texts
from perfcast.domains.servers.datasets.spec_cpu.dump_texts import (
    L3_FIELDS,
    MEMORY_FIELDS,
    SYSTEM_FIELDS,
    UNPARSED,
    Fields,
    Parser,
    Values,
    describe_coverage,
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
from perfcast.domains.servers.parsing.compiler import is_under_xalanc_notice, parse_compiler
from perfcast.domains.servers.parsing.distinct_texts import Coverage, map_distinct, parse_column
from perfcast.domains.servers.parsing.memory import parse_memory
from perfcast.domains.servers.parsing.operating_system import parse_operating_system
from perfcast.domains.servers.parsing.processor_texts import parse_orderable
from perfcast.domains.servers.parsing.scalars import (
    Scalar,
    parse_disclosure,
    parse_flag,
    parse_month,
    parse_number,
    parse_pointer_bits,
)
from perfcast.domains.servers.parsing.storage import parse_storage
from perfcast.domains.servers.parsing.text_normalization import normalize
from perfcast.inference.name_lookup import cpu_model_key

SUITES = {
    "CINT2017rate": "CINT2017rate",
    "CFP2017rate": "CFP2017rate",
    "CINT2017": "CINT2017speed",
    "CFP2017": "CFP2017speed",
    "CINT2017speed": "CINT2017speed",
    "CFP2017speed": "CFP2017speed",
}
"""The dump's `Benchmark` -> suite; the dump omits the word speed."""

FIRST_MONTH = pd.Timestamp(2017, 6, 1)
"""Month in which SPEC released CPU2017; no result is older."""

_DEFECTS = {
    "suite": ("Benchmark", "unknown_suite"),
    "base_score": ("Base Result", "score_not_numeric"),
    "peak_score": ("Peak Result", "score_not_numeric"),
    "cores": ("# Cores", "count_not_numeric"),
    "chips": ("# Chips", "count_not_numeric"),
    "threads_per_core": ("# Enabled Threads Per Core", "count_not_numeric"),
    "base_mhz": ("Processor MHz", "count_not_numeric"),
    "published_month": ("Published", "date_impossible"),
    "result_id": ("Disclosure", "no_result_id"),
}
"""Typed column -> its raw column, and the reason where only that column is invalid."""


def _parse_suite(text: str) -> Scalar[str]:
    return Scalar(SUITES.get(normalize(text)))


_parse_number = partial(parse_number, low=0)
_OTHER_THAN_NUMBERS: dict[str, Parser] = {"Benchmark": _parse_suite, "Published": parse_month}
_REQUIRED: dict[str, tuple[str, Parser]] = {
    name: (column, _OTHER_THAN_NUMBERS.get(column, _parse_number))
    for name, (column, _) in _DEFECTS.items()
    if column != "Disclosure"
}
"""Typed column -> its raw column and parser."""
_FIELDS: Fields = {
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
}
_VALUES: Values = {
    "Parallel": (parse_flag, "parallel"),
    "Base Pointer Size": (parse_pointer_bits, "base_ptr"),
    "Peak Pointer Size": (parse_pointer_bits, "peak_ptr"),
    "Energy Base Result": (_parse_number, "energy_base"),
    "Test Date": (parse_month, "test_month"),
    "HW Avail": (parse_month, "hw_avail"),
    "SW Avail": (parse_month, "sw_avail"),
    "Updated": (parse_month, "updated"),
}
RAW_COLUMNS = (*(column for column, _ in _DEFECTS.values()), *_FIELDS, *_VALUES, *UNPARSED)
"""Columns that are read."""


@dataclass(frozen=True)
class Screened:
    """Results published until the last month, in file order.

    Shapes: `frame` has RAW_COLUMNS as text and the typed columns suite, base_score, peak_score, cores, chips,
    threads_per_core, base_mhz, result_id, arrival_day, published_month, disclosure_parsed, line_in_file, line.
    `after` counts rows published later.
    """

    frame: pd.DataFrame
    after: int


def screen_rows(rows: CsvRows, quarantine: Quarantine, until: pd.Timestamp) -> Screened:
    """Return the results published until the month `until`, and quarantine rows that are not results.

    `line` counts the lines of the file without the rows published later, so every snapshot gives the same lines.
    """
    frame = _parse_required(rows.frame.rename(columns={"line": "line_in_file"}))
    after = frame["published_month"] > until
    frame = frame.assign(line=frame["line_in_file"] - after.cumsum())[~after]
    frame = reject_untyped(frame, quarantine, _DEFECTS)

    early = frame["published_month"] < FIRST_MONTH
    frame = quarantine.reject(frame, early, "date_impossible", "Published " + _to_texts(frame[early], "Published"))
    scoreless = frame["base_score"] == 0
    frame = quarantine.reject(frame, scoreless, "no_score", _to_texts(frame[scoreless], "result_id"))
    impossible = ~_mark_possible_counts(frame)
    frame = quarantine.reject(frame, impossible, "impossible_counts", _describe_counts(frame[impossible]))
    repeated = _mark_repeated(frame)
    frame = quarantine.reject(frame, repeated, "duplicate_result_id", _to_texts(frame[repeated], "result_id"))
    return Screened(frame, int(after.sum()))


def parse_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the standard columns of the text columns; every distinct text is parsed once."""
    notice = map_distinct(frame["Compiler"], lambda text: is_under_xalanc_notice("CINT", parse_compiler(text)))
    integer = frame["suite"].str.startswith("CINT")
    return dump_texts.parse_texts(frame, _FIELDS, _VALUES).assign(
        **split_suite(frame["suite"]),
        xalanc_notice=(integer & notice).astype("float64"),
        cpu_model=map_texts(frame["Processor"], cpu_model_key),
        file_system=map_texts(frame["File System"], lambda text: text.strip().casefold() or None),
    )


def parse_coverage(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the coverage of each raw column; see `measure_coverages`."""
    parsers = {column: parse for column, (parse, _) in (*_FIELDS.items(), *_VALUES.items())}
    parsers |= {column: parse for column, parse in _REQUIRED.values() if column != "Benchmark"}
    # Links differ on every row, so parsing them again would take longer than all other columns together.
    parsed = int(frame["disclosure_parsed"].sum())
    links = Coverage(rows=len(frame), stated=len(frame), complete=parsed, examples=())
    return {**measure_coverages(frame, parsers), "Disclosure": describe_coverage(links)}


def _parse_required(raw: pd.DataFrame) -> pd.DataFrame:
    """Add the typed required columns to the raw frame; a value is missing where its text is invalid."""
    values = {name: parse_column(raw[column], parse, ["value"])["value"] for name, (column, parse) in _REQUIRED.items()}
    disclosure = parse_column(raw["Disclosure"], parse_disclosure, ["result_id", "arrival_day", "complete"])
    values["published_month"] = pd.to_datetime(values["published_month"])
    return raw.assign(
        **values,
        result_id=disclosure["result_id"],
        arrival_day=pd.to_datetime(disclosure["arrival_day"]),
        disclosure_parsed=disclosure["complete"],
    )


def _mark_repeated(frame: pd.DataFrame) -> pd.Series:
    """Mark rows that repeat an earlier identifier without being whole copies of that row."""
    # Copies share their identifier, so only rows with a repeated one are compared.
    shared = frame[frame["result_id"].duplicated(keep=False)]
    again = shared["result_id"].duplicated() & ~shared.duplicated(list(RAW_COLUMNS))
    return again.reindex(frame.index, fill_value=False)


def _mark_possible_counts(frame: pd.DataFrame) -> pd.Series:
    cores, chips = frame["cores"], frame["chips"]
    per_chip = cores / chips.replace(0, np.nan)
    whole = (per_chip % 1 == 0) & (chips % 1 == 0)
    return whole & per_chip.between(1, MAX_CORES_PER_CHIP) & frame["threads_per_core"].isin(THREADS_PER_CORE)


def _describe_counts(frame: pd.DataFrame) -> pd.Series:
    cores, chips, threads = (_to_texts(frame, name) for name in ("# Cores", "# Chips", "# Enabled Threads Per Core"))
    text: pd.Series = cores + " cores, " + chips + " chips, " + threads + " threads per core"
    return text


def _to_texts(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return a column as plain text, not coded."""
    return frame[name].astype("str")
