"""Published SPECjbb2015 results: one row per result; the targets are max-jOPS and critical-jOPS."""

from __future__ import annotations

import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.datasets.spec_java.power import (
    READERS,
    reject_impossible_counts,
    repair_machines,
)

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
    # The texts never state memory in the package. All cores work, as in a rate run. The dump's test dates are empty;
    # results are submitted within weeks of their tests.
    tested = frame["arrival_day"].dt.to_period("M").dt.to_timestamp()
    return frame.assign(hbm_gb=0.0, Memory=frame["Memory Details"], metric="rate", test_month=tested)


DUMP = spec_dump.SpecDump(
    source="spec_jbb2015", suites=SUITES, readers=READERS, screen=_screen, derive=_derive, repair=repair_machines
)

build = DUMP.build
"""Standardize the dump. A result of several nodes stays whole: its nodes share one throughput."""
