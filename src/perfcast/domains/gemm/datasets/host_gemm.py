"""Matrix products measured on one machine: one row per configuration; the target is the rate in GFLOP/s."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.measured_tables import (
    MACHINE_COLUMNS,
    PLACE_COLUMNS,
    describe_first_bad,
    join_machine,
    keep_steadiest,
    mark_outside,
    parse_numbers,
    quarantine,
    read_max_spread,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, read_rows
from perfcast.schema.declare import key, measured, number
from perfcast.schema.table import Column, Kind, Role, Tag

SOURCE = "host_gemm"
TABLE = "host_gemm.csv.gz"
_REMEDY = "measure anew with `perfcast measure gemm --out data/embedded`"
DTYPES = ("bfloat16", "float32", "float64")
CONFIGURATION = ["m", "n", "k", "dtype", "transpose_a", "transpose_b", "threads"]
TIMING = ["warmups", "repeats", "seconds_median", "seconds_min", "seconds_spread", "gflops", "order", "pass"]
RATE_TOLERANCE = 1e-3
"""Largest relative difference of `gflops` from 2 m n k / seconds_median; both are rounded to six digits."""

_NUMBERS = [name for name in [*CONFIGURATION, *TIMING] if name != "dtype"]

_SAME = (Tag.IDENTITY, Tag.CONFIG)
_DTYPE = "element type of A, B and C"
_RATE = "rate of the median sample, 2 m n k / seconds_median; higher is better"
COLUMNS = (
    key("result_id", "the configuration as text", Tag.ROW),
    key("shape", "MxNxK: op(A) is M x K, op(B) is K x N, C is M x N", Tag.ENTITY, Tag.BLOCK),
    Column("dtype", Kind.CATEGORICAL, Role.FEATURE, "problem", meaning=_DTYPE, tags=(Tag.TASK, Tag.CONFIG)),
    number("m", "problem", "rows of the product", tags=_SAME),
    number("n", "problem", "columns of the product", tags=_SAME),
    number("k", "problem", "length of the inner products", tags=_SAME),
    number("transpose_a", "kernel", "1 where A is transposed in memory", low=0, high=1, tags=_SAME),
    number("transpose_b", "kernel", "1 where B is transposed in memory", low=0, high=1, tags=_SAME),
    number("threads", "kernel", "threads of the product", tags=(*_SAME, Tag.SCALING, Tag.PARALLEL)),
    *MACHINE_COLUMNS,
    Column("gflops", Kind.NUMERICAL, Role.TARGET, "problem", "GFLOP/s", _RATE, low=0),
    measured("seconds_median", "median time of one product over the samples", unit="s"),
    measured("seconds_min", "time of the fastest sample", unit="s"),
    measured("seconds_spread", "interquartile range / median of the sample times"),
    measured("warmups", "products before the first sample"),
    measured("repeats", "number of samples"),
    *PLACE_COLUMNS,
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the measured products.

    Options: `max_spread`, the relative interquartile range above which a measurement is quarantined as unstable.

    Raises:
        UserError: A file is missing or broken, or an option is invalid.
    """
    bound = read_max_spread(SOURCE, options)
    rows = read_rows(SOURCE, raw[SOURCE] / TABLE, [*CONFIGURATION, *TIMING])
    frame, rejections = _quarantine(
        parse_numbers(rows.frame.assign(dtype=rows.frame["dtype"].str.strip()), _NUMBERS), bound
    )
    best, duplicates = keep_steadiest(frame, CONFIGURATION)
    best = best.assign(
        result_id=_name_result(best),
        shape=_name_shape(best),
    )
    table, unknown = join_machine(SOURCE, raw[SOURCE], best, COLUMNS, _REMEDY)
    return Standardized(
        table=table,
        rejected=build_rejected_frame([*rows.rejections, *rejections]),
        rows_in=rows.rows_in,
        merged={"duplicate_configuration": duplicates},
        quality={
            "configurations": len(best),
            "shapes": int(best["shape"].nunique()),
            "spread_median": round(float(best["seconds_spread"].median()), 5) if len(best) else None,
            "machine_unknown": unknown,
        },
    )


def _quarantine(frame: pd.DataFrame, bound: float) -> tuple[pd.DataFrame, list[Rejection]]:
    """Quarantine each row under the first rule that it breaks; return the other rows and the rejections."""
    whole = [name for name in CONFIGURATION if name != "dtype"]
    expected = 2 * frame["m"] * frame["n"] * frame["k"] / frame["seconds_median"] / 1e9
    off = (frame["gflops"] / expected - 1).abs()
    times = frame[["seconds_median", "seconds_min", "gflops"]]
    rules = {
        "not_a_number": describe_first_bad(frame[_NUMBERS].isna(), frame),
        "unknown_dtype": frame["dtype"].where(~frame["dtype"].isin(DTYPES)),
        "not_a_whole_number": describe_first_bad(frame[whole] % 1 != 0, frame),
        "not_positive": describe_first_bad(times <= 0, frame),
        "out_of_bounds": describe_first_bad(mark_outside(SOURCE, frame, COLUMNS, _NUMBERS), frame),
        "inconsistent_rate": ("gflops: " + frame["gflops_text"]).where(~(off <= RATE_TOLERANCE)),
        "unstable": ("seconds_spread: " + frame["seconds_spread_text"]).where(frame["seconds_spread"] > bound),
    }
    return quarantine(SOURCE, TABLE, frame, rules)


def _name_shape(frame: pd.DataFrame) -> pd.Series:
    m, n, k = (frame[side].astype("int64").astype("str") for side in ("m", "n", "k"))
    return m + "x" + n + "x" + k


def _name_result(frame: pd.DataFrame) -> pd.Series:
    """Return e.g. 'float32-64x96x128-nt-t2': A as it is, B transposed, two threads."""
    layout = frame["transpose_a"].map({0: "n", 1: "t"}) + frame["transpose_b"].map({0: "n", 1: "t"})
    threads = frame["threads"].astype("int64").astype("str")
    return frame["dtype"] + "-" + _name_shape(frame) + "-" + layout + "-t" + threads
