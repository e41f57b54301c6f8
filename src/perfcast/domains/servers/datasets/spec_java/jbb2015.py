"""Published SPECjbb2015 results: one row per result; the targets are max-jOPS and critical-jOPS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.datasets.spec_java.java_machines import (
    describe_java_dump,
    parse_measured,
    reject_impossible_counts,
)
from perfcast.domains.servers.parsing.distinct_texts import parse_column

SUITES = {"JBB2015COMP": "COMPOSITE", "JBB2015MULTI": "MULTI", "JBB2015DIST": "DISTRIBUTED"}
"""The dump's `Benchmark` -> suite: controller, injector and backend in one JVM, machine, or several machines."""


def _screen(frame: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    withdrawn = (frame["max_jops"] == 0) | (frame["critical_jops"] == 0)
    frame = quarantine.reject(frame, withdrawn, "no_score", frame["result_id"].astype("str"))
    # Critical throughput comes from the same ramp, so a value above the highest is a typing error.
    above = frame["critical_jops"] > frame["max_jops"]
    text = "critical " + frame["Critical-jOPS"] + ", max " + frame["Max-jOPS"]
    return reject_impossible_counts(quarantine.reject(frame, above, "inconsistent_result", text), quarantine)


def _derive(frame: pd.DataFrame) -> pd.DataFrame:
    """Parse the columns of this dump alone: memory with remarks, threads in two columns, no test date."""
    first = frame["Memory (GB)"].str.extract(r"^\s*([\d.,]+)", expand=False).fillna("")
    return frame.assign(
        mem_total_gb=parse_column(first, parse_measured)["value"],
        threads_stated=parse_column(frame["# of threads per core"], parse_measured)["value"],
        threads_total_stated=parse_column(frame["Total # of threads"], parse_measured)["value"],
        # The dump's test dates are empty; results are submitted within weeks of their tests.
        test_month=frame["arrival_day"].dt.to_period("M").dt.to_timestamp(),
    )


DUMP = describe_java_dump(
    "spec_jbb2015",
    texts={
        "vendor": "Company",
        "l1": "Primary Cache",
        "l2": "Secondary Cache",
        "l3": "Tertiary Cache",
        "dimms": "DIMMS",
        "module": "Memory Details",
        "jvm": "JVM",
        "os": "Operating System",
        "disk": "Disk",
        "form": "Form factor",
        "hw_avail": "Hardware Availability",
        "sw_avail": "SW Availability",
        "updated": "Updated",
    },
    required={
        "suite": ("Benchmark", spec_dump.parse_suite(SUITES), "unknown_suite"),
        "max_jops": ("Max-jOPS", parse_measured, "score_not_numeric"),
        "critical_jops": ("Critical-jOPS", parse_measured, "score_not_numeric"),
        "nodes": ("# of nodes", parse_measured, "count_not_numeric"),
        "cores": ("# cores", parse_measured, "count_not_numeric"),
        "chips": ("# chips", parse_measured, "count_not_numeric"),
        "base_mhz": ("CPU Speed", parse_measured, "count_not_numeric"),
    },
    others=("# cores per chip", "# of threads per core", "Total # of threads"),
    screen=_screen,
    derive=_derive,
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the dump; see `spec_dump.build`.

    A result of several nodes stays whole, unlike SPECpower's, because its nodes share one throughput.
    """
    return spec_dump.build(DUMP, raw, options)
