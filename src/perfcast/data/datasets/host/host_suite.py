"""Kernels measured on one machine: one row per kernel, variant, size and number of threads; the target is the rate.

Each kernel has a unit of its own, so rates are compared within a kernel only; kernels are the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.datasets.host.measured_tables import (
    MACHINE_COLUMNS,
    PLACE_COLUMNS,
    describe_first_bad,
    feature,
    join_machine,
    keep_steadiest,
    key,
    mark_outside,
    measurement_column,
    parse_numbers,
    quarantine,
    read_max_spread,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, read_rows
from perfcast.schema.table import Column, Kind, Role, Tag

SOURCE = "host_suite"
TABLE = "host_suite.csv.gz"
CONFIGURATION = ["kernel", "variant", "bytes", "threads"]
WORDS = ["kernel", "variant", "combined", "unit"]
WHOLE = ["bytes", "threads", "pinned", "warmups", "repeats", "calls", "interrupted", "order", "pass"]
TIMES = ["work", "seconds_median", "seconds_min", "rate"]
DISTURBANCES = ["waited_share", "stolen_share", "other_load"]
"""Columns that are empty where the system did not report them."""
COMBINED = {"sum": True, "mean": False}
"""Rule that combines the threads -> True where their rates add up."""
RATE_TOLERANCE = 1e-3
"""Largest relative difference of `rate` from work / seconds_median, times the threads where rates add up.

The numbers are rounded."""

_REMEDY = "measure anew with `perfcast measure suite`"
_NUMBERS = [*WHOLE, *TIMES, "seconds_spread", *DISTURBANCES]
_SAME = (Tag.IDENTITY, Tag.CONFIG, Tag.SCALING)


def _word(name: str, role: Role, meaning: str, *tags: Tag) -> Column:
    return Column(name, Kind.CATEGORICAL, role, "kernel", meaning=meaning, tags=tags)


COLUMNS = (
    key("result_id", "the configuration as text", Tag.ROW, Tag.BLOCK),
    key("problem", "kernel and size, over all variants and numbers of threads", Tag.ENTITY),
    _word("kernel", Role.FEATURE, "measured kernel", Tag.TASK, Tag.CONFIG),
    _word("variant", Role.FEATURE, "data type or access pattern of the kernel", Tag.IDENTITY, Tag.CONFIG),
    feature("bytes", "problem", "working set of one thread", unit="B", tags=_SAME),
    feature("threads", "problem", "number of threads, each with its own working set", tags=_SAME),
    *MACHINE_COLUMNS,
    Column(
        "rate",
        Kind.NUMERICAL,
        Role.TARGET,
        "problem",
        meaning="rate of the median sample, in the unit of column unit; higher is better",
        low=0,
    ),
    _word("unit", Role.PROVENANCE, "unit of the rate"),
    _word("combined", Role.PROVENANCE, "sum: rates of the threads are added; mean: times of the threads are averaged"),
    measurement_column("work", "work of one call in each thread, in the numerator of the unit"),
    measurement_column("seconds_median", "median time of one call over the samples", unit="s"),
    measurement_column("seconds_min", "time of the fastest sample", unit="s"),
    measurement_column("seconds_spread", "interquartile range / median of the sample times"),
    measurement_column("pinned", "1 where each thread was pinned to one processor", high=1),
    measurement_column("warmups", "calls of each thread before the first sample"),
    measurement_column("repeats", "number of samples"),
    measurement_column("calls", "calls of one sample"),
    measurement_column("waited_share", "share of thread time spent waiting for a core", unit="1"),
    measurement_column("stolen_share", "share of thread time taken by the hypervisor", unit="1"),
    measurement_column("other_load", "cores busy with other processes"),
    measurement_column("interrupted", "1 where either share exceeded its limit", high=1),
    *PLACE_COLUMNS,
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the measured kernels; a new kernel needs no change here.

    Options: `max_spread`, the relative interquartile range above which a measurement is quarantined as unstable.

    Raises:
        UserError: A file is missing or broken, or an option is invalid.
    """
    bound = read_max_spread(SOURCE, options)
    rows = read_rows(SOURCE, raw[SOURCE] / TABLE, [*WORDS, *_NUMBERS])
    text = rows.frame.assign(**{name: rows.frame[name].str.strip() for name in [*WORDS, *DISTURBANCES]})
    frame, rejections = _quarantine(parse_numbers(text, _NUMBERS), bound)
    best, duplicates = keep_steadiest(frame, CONFIGURATION)
    size, threads = (best[name].astype("int64").astype("str") for name in ("bytes", "threads"))
    best = best.assign(
        result_id=best["kernel"] + "-" + best["variant"] + "-" + size + "-t" + threads,
        problem=best["kernel"] + "-" + size,
    )
    table, unknown = join_machine(SOURCE, raw[SOURCE], best, COLUMNS, _REMEDY)
    return Standardized(
        table=table,
        rejected=build_rejected_frame([*rows.rejections, *rejections]),
        rows_in=rows.rows_in,
        merged={"duplicate_configuration": duplicates},
        quality={
            "configurations": len(best),
            "units": dict(sorted(zip(best["kernel"], best["unit"], strict=True))),
            "spread_median": round(float(best["seconds_spread"].median()), 5) if len(best) else None,
            "other_load_median": _round_median(best["other_load"]),
            "machine_unknown": unknown,
        },
    )


def _round_median(values: pd.Series) -> float | None:
    return round(float(values.median()), 3) if values.notna().any() else None


def _quarantine(frame: pd.DataFrame, bound: float) -> tuple[pd.DataFrame, list[Rejection]]:
    """Quarantine each row under the first rule that it breaks; return the other rows and the rejections."""
    words = frame[WORDS]
    missing = frame[_NUMBERS].isna()
    for name in DISTURBANCES:
        missing[name] &= frame[f"{name}_text"] != ""
    threads = frame["threads"].where(frame["combined"].map(COMBINED) == True, 1)  # noqa: E712 - a missing value is not True
    deviation = (frame["rate"] / (frame["work"] * threads / frame["seconds_median"]) - 1).abs()
    unit = frame.groupby("kernel")["unit"].transform("first")
    shares = "waited_share: " + frame["waited_share_text"] + ", stolen_share: " + frame["stolen_share_text"]
    rules = {
        "not_a_name": describe_first_bad(
            ~words.apply(lambda column: column.str.fullmatch(r"[A-Za-z0-9_./]+")), frame, ""
        ),
        "not_a_number": describe_first_bad(missing, frame),
        "unknown_combination": frame["combined"].where(~frame["combined"].isin(COMBINED)),
        "not_a_whole_number": describe_first_bad(frame[WHOLE] % 1 != 0, frame),
        "not_positive": describe_first_bad(frame[TIMES] <= 0, frame),
        "out_of_bounds": describe_first_bad(mark_outside(SOURCE, frame, COLUMNS, _NUMBERS), frame),
        "another_unit": frame["unit"].where(frame["unit"] != unit),
        "inconsistent_rate": ("rate: " + frame["rate_text"]).where(~(deviation <= RATE_TOLERANCE)),
        "interrupted": shares.where(frame["interrupted"] == 1),
        "unstable": ("seconds_spread: " + frame["seconds_spread_text"]).where(frame["seconds_spread"] > bound),
    }
    return quarantine(SOURCE, TABLE, frame, rules)
