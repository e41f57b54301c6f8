"""Published SPECjbb2015 results: one row per result; the targets are max-jOPS and critical-jOPS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import parse_last_month
from perfcast.domains.servers.datasets.spec_java import java_rows as shared
from perfcast.domains.servers.datasets.spec_java.java_machines import build_machines, parse_machine
from perfcast.domains.servers.datasets.spec_java.java_rows import (
    Typed,
    parse_measured,
    read_results,
    reject_impossible_counts,
)
from perfcast.domains.servers.parsing.distinct_texts import parse_column
from perfcast.domains.servers.parsing.scalars import Scalar
from perfcast.domains.servers.parsing.text_normalization import normalize
from perfcast.schema.table import Column

SOURCE = "spec_jbb2015"
SUITES = {"JBB2015COMP": "COMPOSITE", "JBB2015MULTI": "MULTI", "JBB2015DIST": "DISTRIBUTED"}
"""The dump's `Benchmark` -> suite: controller, injector and backend in one JVM, machine, or several machines."""

_TEXTS = {
    "vendor": "Company",
    "processor": "Processor",
    "l1": "Primary Cache",
    "l2": "Secondary Cache",
    "l3": "Tertiary Cache",
    "dimms": "DIMMS",
    "module": "Memory Details",
    "jvm": "JVM",
    "os": "Operating System",
    "disk": "Disk",
    "form": "Form factor",
    "hw_avail_text": "Hardware Availability",
    "sw_avail_text": "SW Availability",
    "updated_text": "Updated",
}


def _parse_suite(text: str) -> Scalar[str]:
    return Scalar(SUITES.get(normalize(text)))


_TYPED: dict[str, Typed] = {
    "suite": ("Benchmark", _parse_suite, "unknown_suite"),
    "max_jops": ("Max-jOPS", parse_measured, "score_not_numeric"),
    "critical_jops": ("Critical-jOPS", parse_measured, "score_not_numeric"),
    "nodes": ("# of nodes", parse_measured, "count_not_numeric"),
    "cores": ("# cores", parse_measured, "count_not_numeric"),
    "chips": ("# chips", parse_measured, "count_not_numeric"),
    "base_mhz": ("CPU Speed", parse_measured, "count_not_numeric"),
}
RAW_COLUMNS = shared.list_raw_columns(
    _TEXTS, _TYPED, "JVM Vendor", "# cores per chip", "# of threads per core", "Total # of threads"
)
_CRITICAL = "throughput under response-time limits: geometric mean of critical jOPS at 10 to 100 ms"
_TARGETS = (
    shared.target("max_jops", "jOPS", "highest throughput: last injection rate before the first failure", (10, 1e9)),
    shared.target("critical_jops", "jOPS", _CRITICAL, (10, 1e9)),
)
COLUMNS: tuple[Column, ...] = (
    *shared.KEYS,
    shared.SUITE,
    *shared.JVM,
    *shared.PROCESSOR,
    *shared.MEMORY,
    *shared.SYSTEM,
    *_TARGETS,
    *shared.AUDIT,
)
"""Standard columns in table order."""


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the dump, and join the processor catalog where that source is available.

    A result of several nodes stays whole, unlike SPECpower's, because its nodes share one throughput.

    Options: `published_until`, the last month of publication as YYYY-MM; None keeps all rows.

    Raises:
        UserError: The file is not a whole table with the dump's columns, no row is a result, or the option is not a
            month.
    """
    results = read_results(SOURCE, raw[SOURCE], RAW_COLUMNS, _TYPED, parse_last_month(options.get("published_until")))
    frame = results.frame
    withdrawn = (frame["max_jops"] == 0) | (frame["critical_jops"] == 0)
    frame = results.reject(frame, withdrawn, "no_score", frame["result_id"].astype("str"))
    # Critical throughput comes from the same ramp, so a value above the highest is a typing error.
    above = frame["critical_jops"] > frame["max_jops"]
    frame = results.reject(
        frame, above, "inconsistent_result", "critical " + frame["Critical-jOPS"] + ", max " + frame["Max-jOPS"]
    )
    frame = reject_impossible_counts(frame, results)
    frame = _parse_jbb_columns(parse_machine(frame, _TEXTS))
    return build_machines(frame, results, columns=COLUMNS, texts=_TEXTS, raw=raw, options=options)


def _parse_jbb_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Parse the columns of this dump alone: memory with remarks, threads in two columns, no test date."""
    first = frame["Memory (GB)"].str.extract(r"^\s*([\d.,]+)", expand=False).fillna("")
    return frame.assign(
        mem_total_gb=parse_column(first, parse_measured)["value"],
        threads_stated=parse_column(frame["# of threads per core"], parse_measured)["value"],
        threads_total_stated=parse_column(frame["Total # of threads"], parse_measured)["value"],
        # The dump's test dates are empty; results are submitted within weeks of their tests.
        test_month=frame["arrival_day"].dt.to_period("M").dt.to_timestamp(),
    )
