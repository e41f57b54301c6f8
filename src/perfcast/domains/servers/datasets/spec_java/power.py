"""Published SPECpower_ssj2008 results: one row per result, scaled to one node.

The targets are operations and watts."""

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
    Results,
    Typed,
    parse_measured,
    read_results,
    reject_impossible_counts,
)
from perfcast.domains.servers.parsing.distinct_texts import parse_column
from perfcast.domains.servers.parsing.scalars import parse_month
from perfcast.schema.table import Column, Kind, Role, Tag

SOURCE = "spec_power"
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

_TEXTS = {
    "vendor": "Hardware Vendor",
    "processor": "Processor",
    "l1": "1st Level Cache",
    "l2": "2nd Level Cache",
    "l3": "3rd Level Cache",
    "dimms": "DIMMS",
    "module": "Memory Description",
    "jvm": "JVM Version",
    "os": "os",
    "disk": "Disk Drive",
    "form": "Form Factor",
    "hw_avail_text": "HW Avail",
    "sw_avail_text": "SW Avail",
    "updated_text": "Updated",
}
_LEVELS = {f"level {name}": name for name in (*OPERATIONS, *WATTS)}
_TYPED: dict[str, Typed] = {
    "ssj_ops_per_watt": ("Result", parse_measured, "score_not_numeric"),
    **{level: (name, parse_measured, "score_not_numeric") for level, name in _LEVELS.items()},
    "nodes": ("Nodes", parse_measured, "count_not_numeric"),
    "cores": ("# Cores", parse_measured, "count_not_numeric"),
    "chips": ("# Chips", parse_measured, "count_not_numeric"),
    "base_mhz": ("Processor MHz", parse_measured, "count_not_numeric"),
}
RAW_COLUMNS = shared.list_raw_columns(
    {name: column for name, column in _TEXTS.items() if name != "os"},
    _TYPED,
    *("Operating System Version", "Test Date", "JVM Vendor"),
    *("# Cores Per Chip", "# Threads Per Core", "Power Supplies Installed", "Power Supply Rating (watts)"),
)
_CORES_IN_NAME = r"(?i)\b(\d{1,3}) Cores\b"
_ROUNDING = 0.01
"""Largest relative rounding error of the sums of published levels."""

_TARGETS = (
    shared.target("ssj_ops_per_watt", "ssj_ops/W", "overall result: sum of operations / sum of watts", (1, 1e6)),
    shared.target("ssj_ops_100", "ssj_ops", "operations per second per node at full load", (1e3, 1e9)),
    shared.target("watts_100", "W", "average power per node at full load", (5, 1e5)),
    shared.target("watts_idle", "W", "average power per node at active idle", (1, 1e5)),
)
_POWER_SUPPLY = (
    Column("psu_count", Kind.NUMERICAL, Role.FEATURE, "system", "", "power supplies", 1, 64, (Tag.CONFIG,)),
    Column("psu_w", Kind.NUMERICAL, Role.FEATURE, "system", "W", "rated power of a supply", 20, 20000, (Tag.CONFIG,)),
)
COLUMNS: tuple[Column, ...] = (
    *shared.KEYS,
    shared.SUITE,
    *shared.JVM,
    *shared.PROCESSOR,
    *shared.MEMORY,
    *shared.SYSTEM,
    *_POWER_SUPPLY,
    *_TARGETS,
    *shared.AUDIT,
)
"""Standard columns in table order."""


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the dump, and join the processor catalog where that source is available.

    Options: `published_until`, the last month of publication as YYYY-MM; None keeps all rows.

    Raises:
        UserError: The file is not a whole table with the dump's columns, no row is a result, or the option is not a
            month.
    """
    results = read_results(SOURCE, raw[SOURCE], RAW_COLUMNS, _TYPED, parse_last_month(options.get("published_until")))
    frame = _screen_rows(results.frame, results)
    version = frame["Operating System Version"]
    frame = frame.assign(os=frame["Operating System"] + " " + version, suite=SUITE)
    frame = _divide_by_nodes(parse_machine(frame, _TEXTS))
    return build_machines(frame, results, columns=COLUMNS, texts=_TEXTS, raw=raw, options=options)


def _screen_rows(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Quarantine withdrawn results, inconsistent results, and impossible counts."""
    # SPEC replaces a non-compliant result by 0; its levels are not valid measurements.
    withdrawn = frame["ssj_ops_per_watt"] == 0
    frame = results.reject(frame, withdrawn, "no_score", frame["result_id"].astype("str"))
    operations, watts = (frame[[f"level {name}" for name in names]].sum(axis=1) for names in (OPERATIONS, WATTS))
    ratio = (operations / watts.where(watts > 0) / frame["ssj_ops_per_watt"]).fillna(0.0)
    text = "levels give " + ratio.map("{:.4g}".format) + " of the overall result"
    frame = results.reject(frame, (ratio - 1).abs() > _ROUNDING, "inconsistent_result", text)
    # One row lacks chips; they follow from cores and cores per chip.
    per_chip = parse_column(frame["# Cores Per Chip"], parse_measured)["value"]
    frame = frame.assign(chips=frame["chips"].mask(frame["chips"] == 0, frame["cores"] / per_chip))
    # Two rows count every core of a 24-core chip as a chip; the processor's name gives its cores.
    implied = frame["cores"] / frame["Processor"].str.extract(_CORES_IN_NAME, expand=False).astype("float64")
    frame = frame.assign(chips=frame["chips"].mask(implied < frame["chips"], implied))
    nodes = frame["nodes"].where(frame["nodes"] > 0)
    return reject_impossible_counts(frame.assign(chips=frame["chips"] / nodes, cores=frame["cores"] / nodes), results)


def _divide_by_nodes(frame: pd.DataFrame) -> pd.DataFrame:
    """Divide operations, watts and memory by the nodes, and parse the columns of this dump alone.

    A multi-node result publishes sums over equal machines in one enclosure. Divided by the nodes, it is comparable to
    single machines; a fifth of all results are of this kind. Shared fans and power supplies are divided too, so `nodes`
    stays a feature. Operations per watt do not change. Cores and chips are already per node.
    """
    nodes = frame["nodes"]
    number = {
        name: parse_column(frame[column], parse_measured)["value"]
        for name, column in {
            "memory": "Memory (GB)",
            "threads": "# Threads Per Core",
            "psu_count": "Power Supplies Installed",
            "psu_w": "Power Supply Rating (watts)",
        }.items()
    }
    memory = number["memory"] / nodes
    # DIMMs are stated per node; on a few rows so is the capacity.
    stated_per_node = (number["memory"] == frame["mem_sum_gb"]) & (nodes > 1)
    return frame.assign(
        ssj_ops_100=frame[f"level {OPERATIONS[0]}"] / nodes,
        watts_100=frame[f"level {WATTS[0]}"] / nodes,
        watts_idle=frame[f"level {WATTS[-1]}"] / nodes,
        mem_total_gb=memory.mask(stated_per_node, number["memory"]),
        threads_stated=number["threads"],
        threads_total_stated=float("nan"),
        # 0 marks power supplies shared in an enclosure.
        psu_count=number["psu_count"].where(number["psu_count"] > 0),
        psu_w=number["psu_w"].where(number["psu_w"] > 0),
        test_month=pd.to_datetime(parse_column(frame["Test Date"], parse_month)["value"]),
    )
