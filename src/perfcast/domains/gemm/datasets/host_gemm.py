"""Matrix products measured on one machine: one row per configuration; the target is the rate in GFLOP/s."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.measured_tables import (
    FACTS,
    MACHINE_COLUMNS,
    describe_first_bad,
    parse_numbers,
    quarantine,
    read_machine,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, read_rows
from perfcast.domains import read_columns
from perfcast.schema.table import build_table, out_of_bounds
from perfcast.utils.errors import UserError

SOURCE = "host_gemm"
TABLE = "host_gemm.csv.gz"
_REMEDY = "measure anew with `perfcast measure gemm --out data/embedded`"
DTYPES = ("bfloat16", "float32", "float64")
CONFIGURATION = ["m", "n", "k", "dtype", "transpose_a", "transpose_b", "threads"]
TIMING = [
    "warmups",
    "repeats",
    "seconds_median",
    "seconds_min",
    "seconds_spread",
    "gflops",
    "order",
    "pass",
]
RATE_TOLERANCE = 1e-3
"""Largest relative difference of `gflops` from 2 m n k / seconds_median; both are rounded to six digits."""

_NUMBERS = [name for name in [*CONFIGURATION, *TIMING] if name != "dtype"]

COLUMNS = (
    *read_columns(__package__, "columns.csv", "host_gemm"),
    *MACHINE_COLUMNS,
    *read_columns(__package__, "columns.csv", "host_gemm_results"),
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the measured products.

    Options: `max_spread`, the relative interquartile range above which a measurement is quarantined as unstable.

    Raises:
        UserError: A file is missing or broken, or an option is invalid.
    """
    bound = options.get("max_spread", 0.5)
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not bound > 0:
        raise UserError(f"option 'max_spread' of {SOURCE} must be a positive number", f"found {bound!r}")
    rows = read_rows(SOURCE, raw[SOURCE] / TABLE, [*CONFIGURATION, *TIMING])
    texts = rows.frame.assign(dtype=rows.frame["dtype"].str.strip())
    frame, rejections = _quarantine(parse_numbers(texts, _NUMBERS), bound)
    # the steadiest measurement of a configuration counts, the first on ties
    ordered = frame.sort_values([*CONFIGURATION, "seconds_spread", "line"], kind="stable")
    best = ordered.drop_duplicates(CONFIGURATION).reset_index(drop=True)
    machine = read_machine(SOURCE, raw[SOURCE] / f"{SOURCE}.json", _REMEDY)
    of_machine = {column.name: machine.get(column.name) for column in MACHINE_COLUMNS}
    joined = best.assign(
        result_id=_name_result(best),
        shape=_name_shape(best),
        source_file=TABLE,
        source_line=best["line"],
        **of_machine,
    )
    facts = {"machine": {name: machine[name] for name in FACTS if machine.get(name) is not None}}
    return Standardized(
        table=build_table(SOURCE, joined, COLUMNS, facts),
        rejected=build_rejected_frame([*rows.rejections, *rejections]),
        rows_in=rows.rows_in,
        merged={"duplicate_configuration": len(frame) - len(best)},
        quality={
            "configurations": len(best),
            "shapes": int(joined["shape"].nunique()),
            "spread_median": round(float(best["seconds_spread"].median()), 5) if len(best) else None,
            "machine_unknown": [name for name, value in of_machine.items() if value is None],
        },
    )


def _quarantine(frame: pd.DataFrame, bound: float) -> tuple[pd.DataFrame, list[Rejection]]:
    """Quarantine each row under the first rule that it breaks; return the other rows and the rejections."""
    whole = [name for name in CONFIGURATION if name != "dtype"]
    expected = 2 * frame["m"] * frame["n"] * frame["k"] / frame["seconds_median"] / 1e9
    off = (frame["gflops"] / expected - 1).abs()
    times = frame[["seconds_median", "seconds_min", "gflops"]]
    numbers = [column for column in COLUMNS if column.name in _NUMBERS]
    outside = out_of_bounds(build_table(SOURCE, frame, numbers)).set_axis(frame.index)
    rules = {
        "not_a_number": describe_first_bad(frame[_NUMBERS].isna(), frame),
        "unknown_dtype": frame["dtype"].where(~frame["dtype"].isin(DTYPES)),
        "not_a_whole_number": describe_first_bad(frame[whole] % 1 != 0, frame),
        "not_positive": describe_first_bad(times <= 0, frame),
        "out_of_bounds": describe_first_bad(outside, frame),
        "inconsistent_rate": ("gflops: " + frame["gflops_text"]).where(~(off <= RATE_TOLERANCE)),
        "unstable": ("seconds_spread: " + frame["seconds_spread_text"]).where(frame["seconds_spread"] > bound),
    }
    return quarantine(SOURCE, TABLE, frame, rules)


def _name_shape(frame: pd.DataFrame) -> pd.Series:
    m = frame["m"].astype("int64").astype("str")
    n = frame["n"].astype("int64").astype("str")
    k = frame["k"].astype("int64").astype("str")
    return m + "x" + n + "x" + k


def _name_result(frame: pd.DataFrame) -> pd.Series:
    """Return e.g. 'float32-64x96x128-nt-t2': A as it is, B transposed, two threads."""
    letters = {0: "n", 1: "t"}
    layout = frame["transpose_a"].map(letters) + frame["transpose_b"].map(letters)
    threads = frame["threads"].astype("int64").astype("str")
    return frame["dtype"] + "-" + _name_shape(frame) + "-" + layout + "-t" + threads
