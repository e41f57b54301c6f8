"""Published SPECpower_ssj2008 results: one row per result, scaled to one node.

The targets are operations and watts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.datasets.spec_java.java_machines import (
    READERS,
    parse_measured,
    reject_impossible_counts,
    repair_machines,
)
from perfcast.domains.servers.parsing.distinct_texts import parse_column

SUITE = "SPECpower_ssj2008"
LOADS = tuple(range(100, 0, -10))
OPERATIONS = tuple(f"ssj_ops @ {load}% of target load" for load in LOADS)
WATTS = (
    *(f"Average watts @ {load}% of target load" for load in LOADS[:-1]),
    "Average watts@10% of target load",
    "Average watts @ active idle",
)
"""Columns as published, including their blanks.

Levels below 100 % only check the overall result. They are measured with the targets, so they are no features."""

_CORES_IN_NAME = r"(?i)\b(\d{1,3}) Cores\b"
_ROUNDING = 0.01
"""Largest relative rounding error of the sums of published levels."""


def _screen(frame: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    """Quarantine withdrawn results, inconsistent results, and impossible counts; divide the counts by the nodes."""
    # SPEC replaces a non-compliant result by 0; its levels are not valid measurements.
    withdrawn = frame["ssj_ops_per_watt"] == 0
    frame = quarantine.reject(frame, withdrawn, "no_score", frame["result_id"].astype("str"))
    operations, watts = (frame[[f"level {name}" for name in names]].sum(axis=1) for names in (OPERATIONS, WATTS))
    ratio = (operations / watts.where(watts > 0) / frame["ssj_ops_per_watt"]).fillna(0.0)
    text = "levels give " + ratio.map("{:.4g}".format).astype("str") + " of the overall result"
    frame = quarantine.reject(frame, (ratio - 1).abs() > _ROUNDING, "inconsistent_result", text)
    # One row lacks chips; they follow from cores and cores per chip.
    per_chip = parse_column(frame["# Cores Per Chip"], parse_measured)["value"]
    frame = frame.assign(chips=frame["chips"].mask(frame["chips"] == 0, frame["cores"] / per_chip))
    # Two rows count every core of a 24-core chip as a chip; the processor's name gives its cores.
    implied = frame["cores"] / frame["Processor"].str.extract(_CORES_IN_NAME, expand=False).astype("float64")
    frame = frame.assign(chips=frame["chips"].mask(implied < frame["chips"], implied))
    nodes = frame["nodes"].where(frame["nodes"] > 0)
    frame = frame.assign(
        chips=frame["chips"] / nodes,
        cores=frame["cores"] / nodes,
        os=frame["Operating System"] + " " + frame["Operating System Version"],
        suite=SUITE,
    )
    return reject_impossible_counts(frame, quarantine)


def _derive(frame: pd.DataFrame) -> pd.DataFrame:
    """Divide operations, watts and memory by the nodes.

    A multi-node result publishes sums over equal machines in one enclosure. Divided by the nodes, it is comparable to
    single machines; a fifth of all results are of this kind. Shared fans and power supplies are divided too, so `nodes`
    stays a feature. Operations per watt do not change. Cores and chips are already per node.
    """
    nodes = frame["nodes"]
    # DIMMs are stated per node; on a few rows so is the capacity.
    memory = frame["mem_stated_gb"]
    stated_per_node = (memory == frame["mem_sum_gb"]) & (nodes > 1)
    return frame.assign(
        ssj_ops_100=frame[f"level {OPERATIONS[0]}"] / nodes,
        watts_100=frame[f"level {WATTS[0]}"] / nodes,
        watts_idle=frame[f"level {WATTS[-1]}"] / nodes,
        mem_total_gb=(memory / nodes).mask(stated_per_node, memory),
        threads_total_stated=float("nan"),
        # 0 marks power supplies shared in an enclosure.
        psu_count=frame["psu_count"].where(frame["psu_count"] > 0),
        psu_w=frame["psu_w"].where(frame["psu_w"] > 0),
        # The texts never state memory in the package. All cores work, as in a rate run.
        hbm_gb=0.0,
        Memory=frame["Memory Description"],
        metric="rate",
    )


DUMP = spec_dump.SpecDump(
    source="spec_power", readers=READERS, derived=("os",), screen=_screen, derive=_derive, repair=repair_machines
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the dump; see `spec_dump.build`."""
    return spec_dump.build(DUMP, raw, options)
