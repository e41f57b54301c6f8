"""Kernels of the suite measured on one machine: one row per kernel, variant, size and threads, its rate the target.

The unit of the rate is the kernel's own, so a rate is compared within its kernel only; kernels are the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.datasets._measured import (
    FACTS,
    MACHINE_COLUMNS,
    audit,
    feature,
    first_of,
    keep_steadiest,
    key,
    max_spread,
    quarantine,
    read_machine,
    with_numbers,
)
from perfcast.datasets._strict_csv import Rejection, read_rows, rejected_frame
from perfcast.datasets.base import Standardized
from perfcast.schema import Column, Kind, Role, Tag, build_table, out_of_bounds

SOURCE = "host_suite"
TABLE, MACHINE = "host_suite.csv.gz", "host_suite.json"
CONFIGURATION = ["kernel", "variant", "bytes", "threads"]
WORDS = ["kernel", "variant", "combined", "unit"]
WHOLE = ["bytes", "threads", "pinned", "warmups", "repeats", "calls", "interrupted", "order", "pass"]
TIMES = ["work", "seconds_median", "seconds_min", "rate"]
DISTURBANCES = ["waited_share", "stolen_share", "other_load"]
"""Empty where the system did not tell."""
COMBINED = {"sum": True, "mean": False}
"""Whether the rates of the threads add up."""
RATE_TOLERANCE = 1e-3
"""How far `rate` may be from work / seconds_median, times the threads where rates add up: they are rounded."""

_REMEDY = "measure anew with `perfcast measure suite`"
_NUMBERS = [*WHOLE, *TIMES, "seconds_spread", *DISTURBANCES]
_SAME = (Tag.IDENTITY, Tag.CONFIG, Tag.SCALING)


def _word(name: str, role: Role, meaning: str, *tags: Tag) -> Column:
    return Column(name, Kind.CATEGORICAL, role, "kernel", meaning=meaning, tags=tags)


COLUMNS = (
    key("result_id", "the configuration as text", Tag.ROW, Tag.BLOCK),
    key("problem", "kernel and size: its variants and numbers of threads together", Tag.ENTITY),
    _word("kernel", Role.FEATURE, "what is measured", Tag.TASK, Tag.CONFIG),
    _word("variant", Role.FEATURE, "what the kernel works on or with", Tag.IDENTITY, Tag.CONFIG),
    feature("bytes", "problem", "memory that one thread works on", unit="B", tags=_SAME),
    feature("threads", "problem", "threads, each with memory of its own", tags=_SAME),
    *MACHINE_COLUMNS,
    Column(
        "rate",
        Kind.NUMERICAL,
        Role.TARGET,
        "problem",
        meaning="rate of the median sample in the unit of its kernel (column unit); higher is better",
        low=0,
    ),
    _word("unit", Role.PROVENANCE, "unit of the rate"),
    _word("combined", Role.PROVENANCE, "sum: of the threads' rates; mean: of the threads' times"),
    audit("work", "what one call does in each thread, in the numerator of the unit"),
    audit("seconds_median", "median over samples of the time of one call", unit="s"),
    audit("seconds_min", "fastest sample", unit="s"),
    audit("seconds_spread", "interquartile range / median of the samples"),
    audit("pinned", "1 where each thread stayed on a processor of its own", high=1),
    audit("warmups", "calls of each thread before the first sample"),
    audit("repeats", "samples"),
    audit("calls", "calls of one sample"),
    audit("waited_share", "share of the threads' time in which they waited for a core", unit="1"),
    audit("stolen_share", "share of the threads' time in which the hypervisor had taken their core", unit="1"),
    audit("other_load", "cores of the machine that other processes kept busy"),
    audit("interrupted", "1 where either share was more than is harmless", high=1),
    audit("order", "position in the sequence of measurements"),
    audit("pass", "0 when measured for the first time, more when measured again"),
    Column("source_file", Kind.CATEGORICAL, Role.PROVENANCE, "problem", meaning="file the row was read from"),
    audit("source_line", "line of that file"),
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardise the measured kernels; a kernel that is new needs no change here.

    Options: `max_spread`, the relative interquartile range above which a measurement is quarantined as unstable.

    Raises: UserError when a file is missing or broken, or an option is.
    """
    bound = max_spread(SOURCE, options)
    rows = read_rows(SOURCE, raw[SOURCE] / TABLE, [*WORDS, *_NUMBERS])
    text = rows.frame.assign(**{name: rows.frame[name].str.strip() for name in [*WORDS, *DISTURBANCES]})
    frame, rejections = _quarantine(with_numbers(text, _NUMBERS), bound)
    best, duplicates = keep_steadiest(frame, CONFIGURATION)
    machine = read_machine(SOURCE, raw[SOURCE] / MACHINE, _REMEDY)
    size, threads = (best[name].astype("int64").astype("str") for name in ("bytes", "threads"))
    best = best.assign(
        result_id=best["kernel"] + "-" + best["variant"] + "-" + size + "-t" + threads,
        problem=best["kernel"] + "-" + size,
        source_file=TABLE,
        source_line=best["line"],
        **{column.name: machine.get(column.name) for column in MACHINE_COLUMNS},
    )
    facts = {"machine": {name: machine[name] for name in FACTS if machine.get(name) is not None}}
    return Standardized(
        table=build_table(SOURCE, best, COLUMNS, facts),
        rejected=rejected_frame([*rows.rejections, *rejections]),
        rows_in=rows.rows_in,
        merged={"duplicate_configuration": duplicates},
        quality={
            "configurations": len(best),
            "units": dict(sorted(zip(best["kernel"], best["unit"], strict=True))),
            "spread_median": round(float(best["seconds_spread"].median()), 5) if len(best) else None,
            "other_load_median": _median(best["other_load"]),
            "machine_unknown": [c.name for c in MACHINE_COLUMNS if machine.get(c.name) is None],
        },
    )


def _median(values: pd.Series) -> float | None:
    return round(float(values.median()), 3) if values.notna().any() else None


def _quarantine(frame: pd.DataFrame, bound: float) -> tuple[pd.DataFrame, list[Rejection]]:
    """Take out rows by the first rule they break; return the others and the rejections."""
    words = frame[WORDS]
    missing = frame[_NUMBERS].isna()
    for name in DISTURBANCES:
        missing[name] &= frame[f"{name}_text"] != ""
    threads = frame["threads"].where(frame["combined"].map(COMBINED) == True, 1)  # noqa: E712 - missing is not true
    off = (frame["rate"] / (frame["work"] * threads / frame["seconds_median"]) - 1).abs()
    unit = frame.groupby("kernel")["unit"].transform("first")
    shares = "waited_share: " + frame["waited_share_text"] + ", stolen_share: " + frame["stolen_share_text"]
    rules = {
        "not_a_name": _first_word(~words.apply(lambda column: column.str.fullmatch(r"[A-Za-z0-9_./]+")), frame),
        "not_a_number": first_of(missing, frame),
        "unknown_combination": frame["combined"].where(~frame["combined"].isin(COMBINED)),
        "not_a_whole_number": first_of(frame[WHOLE] % 1 != 0, frame),
        "not_positive": first_of(frame[TIMES] <= 0, frame),
        "out_of_bounds": first_of(_outside(frame), frame),
        "another_unit": frame["unit"].where(frame["unit"] != unit),
        "inconsistent_rate": ("rate: " + frame["rate_text"]).where(~(off <= RATE_TOLERANCE)),
        "interrupted": shares.where(frame["interrupted"] == 1),
        "unstable": ("seconds_spread: " + frame["seconds_spread_text"]).where(frame["seconds_spread"] > bound),
    }
    return quarantine(SOURCE, TABLE, frame, rules)


def _first_word(bad: pd.DataFrame, frame: pd.DataFrame) -> pd.Series:
    return first_of(bad, frame.assign(**{f"{name}_text": frame[name] for name in WORDS}))


def _outside(frame: pd.DataFrame) -> pd.DataFrame:
    """Return which of the numbers read lie outside their declared bounds."""
    columns = [column for column in COLUMNS if column.name in _NUMBERS]
    return out_of_bounds(build_table(SOURCE, frame, columns)).set_axis(frame.index)
