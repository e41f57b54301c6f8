"""Matrix products measured on one machine: one row per configuration, its rate the target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.datasets._strict_csv import Rejection, read_rows, rejected_frame
from perfcast.datasets.base import Standardized
from perfcast.errors import UserError
from perfcast.io import read_json
from perfcast.schema import Column, Kind, Role, Tag, build_table, out_of_bounds

SOURCE = "host_gemm"
TABLE, MACHINE = "host_gemm.csv.gz", "host_gemm.json"
DTYPES = ("bfloat16", "float32", "float64")
CONFIGURATION = ["m", "n", "k", "dtype", "transpose_a", "transpose_b", "threads"]
TIMING = ["warmups", "repeats", "seconds_median", "seconds_min", "seconds_spread", "gflops", "order", "pass"]
RATE_TOLERANCE = 1e-3
"""How far `gflops` may be from 2 m n k / seconds_median: both are rounded to six digits."""

_FACTS = ("architecture", "cpu_model", "cpu_vendor", "flags", "kernel", "sockets", "versions", "virtual")
Tags = tuple[Tag, ...]
_NUMBERS = [name for name in [*CONFIGURATION, *TIMING] if name != "dtype"]


def _feature(
    name: str, group: str, meaning: str, *, unit: str = "", low: float = 1, high: float | None = None, tags: Tags = ()
) -> Column:
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, low, high, tags)


def _key(name: str, meaning: str, *tags: Tag) -> Column:
    return Column(name, Kind.CATEGORICAL, Role.KEY, "problem", meaning=meaning, tags=tags)


def _audit(name: str, meaning: str, *, unit: str = "") -> Column:
    return Column(name, Kind.NUMERICAL, Role.PROVENANCE, "problem", unit, meaning, low=0)


_SAME = (Tag.IDENTITY, Tag.CONFIG)
MACHINE_COLUMNS = (
    Column("cpu_model", Kind.CATEGORICAL, Role.FEATURE, "machine", meaning="processor as the system names it"),
    _feature("cores", "machine", "logical processors"),
    _feature("threads_per_core", "machine", "hardware threads of one core"),
    _feature("l1d_kib", "machine", "first-level data caches of the machine together", unit="KiB"),
    _feature("l2_kib", "machine", "second-level caches of the machine together", unit="KiB"),
    _feature("l3_kib", "machine", "last-level caches of the machine together", unit="KiB"),
    _feature("memory_gib", "machine", "memory the system sees", unit="GiB", low=0),
)
_DTYPE = "type of the elements of A, B and C"
_RATE = "rate of the median sample, 2 m n k / seconds_median; higher is better"
COLUMNS = (
    _key("result_id", "the configuration as text", Tag.ROW),
    _key("shape", "MxNxK: op(A) is M x K, op(B) is K x N, C is M x N", Tag.ENTITY, Tag.BLOCK),
    Column("dtype", Kind.CATEGORICAL, Role.FEATURE, "problem", meaning=_DTYPE, tags=(Tag.TASK, Tag.CONFIG)),
    _feature("m", "problem", "rows of the product", tags=_SAME),
    _feature("n", "problem", "columns of the product", tags=_SAME),
    _feature("k", "problem", "length of the inner products", tags=_SAME),
    _feature("transpose_a", "kernel", "1 where A lies transposed in memory", low=0, high=1, tags=_SAME),
    _feature("transpose_b", "kernel", "1 where B lies transposed in memory", low=0, high=1, tags=_SAME),
    _feature("threads", "kernel", "threads the product may use", tags=(*_SAME, Tag.SCALING)),
    *MACHINE_COLUMNS,
    Column("gflops", Kind.NUMERICAL, Role.TARGET, "problem", "GFLOP/s", _RATE, low=0),
    _audit("seconds_median", "median over samples of the time of one product", unit="s"),
    _audit("seconds_min", "fastest sample", unit="s"),
    _audit("seconds_spread", "interquartile range / median of the samples"),
    _audit("warmups", "products before the first sample"),
    _audit("repeats", "samples"),
    _audit("order", "position in the sequence of measurements"),
    _audit("pass", "0 when measured for the first time, more when measured again"),
    Column("source_file", Kind.CATEGORICAL, Role.PROVENANCE, "problem", meaning="file the row was read from"),
    _audit("source_line", "line of that file"),
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardise the measured products.

    Options: `max_spread`, the relative interquartile range above which a measurement is quarantined as unstable.

    Raises: UserError when a file is missing or broken, or an option is.
    """
    max_spread = _max_spread(options)
    rows = read_rows(SOURCE, raw[SOURCE] / TABLE, [*CONFIGURATION, *TIMING])
    frame, rejections = _quarantine(_typed(rows.frame), max_spread)
    best, duplicates = _keep_steadiest(frame)
    machine = _read_machine(raw[SOURCE] / MACHINE)
    best = best.assign(
        result_id=_result_id(best),
        shape=_shape(best),
        source_file=TABLE,
        source_line=best["line"],
        **{column.name: machine.get(column.name) for column in MACHINE_COLUMNS},
    )
    facts = {"machine": {name: machine[name] for name in _FACTS if machine.get(name) is not None}}
    table = build_table("host_gemm", best, COLUMNS, facts)
    return Standardized(
        table=table,
        rejected=rejected_frame([*rows.rejections, *rejections]),
        rows_in=rows.rows_in,
        merged={"duplicate_configuration": duplicates},
        quality={
            "configurations": len(best),
            "shapes": int(best["shape"].nunique()),
            "spread_median": round(float(best["seconds_spread"].median()), 5) if len(best) else None,
            "machine_unknown": [c.name for c in MACHINE_COLUMNS if machine.get(c.name) is None],
        },
    )


def _max_spread(options: Mapping[str, Any]) -> float:
    value = options.get("max_spread", 0.5)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UserError("option 'max_spread' of host_gemm must be a positive number", f"found {value!r}")
    return float(value)


def _typed(text: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with finite numbers, missing where the text is not one; the text stays in `<name>_text`."""
    numbers = {name: pd.to_numeric(text[name], errors="coerce").astype("float64") for name in _NUMBERS}
    finite = {name: values.where(np.isfinite(values)) for name, values in numbers.items()}
    return text.assign(dtype=text["dtype"].str.strip(), **finite, **{f"{name}_text": text[name] for name in _NUMBERS})


def _quarantine(frame: pd.DataFrame, max_spread: float) -> tuple[pd.DataFrame, list[Rejection]]:
    """Take out rows by the first rule they break; return the others and the rejections."""
    whole = [name for name in CONFIGURATION if name != "dtype"]
    expected = 2 * frame["m"] * frame["n"] * frame["k"] / frame["seconds_median"] / 1e9
    off = (frame["gflops"] / expected - 1).abs()
    times = frame[["seconds_median", "seconds_min", "gflops"]]
    rules = {
        "not_a_number": _first_of(frame[_NUMBERS].isna(), frame),
        "unknown_dtype": frame["dtype"].where(~frame["dtype"].isin(DTYPES)),
        "not_a_whole_number": _first_of(frame[whole] % 1 != 0, frame),
        "not_positive": _first_of(times <= 0, frame),
        "out_of_bounds": _first_of(_outside(frame), frame),
        "inconsistent_rate": ("gflops: " + frame["gflops_text"]).where(~(off <= RATE_TOLERANCE)),
        "unstable": ("seconds_spread: " + frame["seconds_spread_text"]).where(frame["seconds_spread"] > max_spread),
    }
    rejections = []
    good = pd.Series(True, index=frame.index)
    for reason, detail in rules.items():
        hit = good & detail.notna()
        good &= ~hit
        rejections += [
            Rejection(SOURCE, TABLE, int(line), reason, str(text)[:200])
            for line, text in zip(frame.loc[hit, "line"], detail[hit], strict=True)
        ]
    return frame[good], rejections


def _outside(frame: pd.DataFrame) -> pd.DataFrame:
    """Return which of the numbers read lie outside their declared bounds."""
    columns = [column for column in COLUMNS if column.name in _NUMBERS]
    return out_of_bounds(build_table("host_gemm", frame, columns)).set_axis(frame.index)


def _first_of(bad: pd.DataFrame, frame: pd.DataFrame) -> pd.Series:
    """Return '<column>: <text>' of the first bad cell of each row, missing where there is none."""
    detail = pd.Series(np.nan, index=frame.index, dtype="str")
    for name in reversed(list(bad.columns)):
        rows = bad[name]
        detail[rows] = f"{name}: " + frame.loc[rows, f"{name}_text"]
    return detail


def _keep_steadiest(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Keep the measurement with the smallest spread of each configuration; on a tie the earlier line."""
    ordered = frame.sort_values([*CONFIGURATION, "seconds_spread", "line"], kind="stable")
    best = ordered.drop_duplicates(CONFIGURATION)
    return best.reset_index(drop=True), len(frame) - len(best)


def _shape(frame: pd.DataFrame) -> pd.Series:
    m, n, k = (frame[side].astype("int64").astype("str") for side in ("m", "n", "k"))
    return m + "x" + n + "x" + k


def _result_id(frame: pd.DataFrame) -> pd.Series:
    """Return e.g. 'float32-64x96x128-nt-t2': n and t say which operand lies transposed, t2 is two threads."""
    layout = frame["transpose_a"].map({0: "n", 1: "t"}) + frame["transpose_b"].map({0: "n", 1: "t"})
    threads = frame["threads"].astype("int64").astype("str")
    return frame["dtype"] + "-" + _shape(frame) + "-" + layout + "-t" + threads


def _read_machine(path: Path) -> dict[str, Any]:
    """Read the machine's description; what is not a usable value is left out."""
    remedy = "measure anew with `perfcast measure gemm`"
    if not path.is_file():
        raise UserError(f"source {SOURCE!r} must have the file {path.name}", f"{path} is not there", remedy)
    try:
        content = read_json(path)
    except ValueError as error:
        raise UserError(f"{path} must be JSON", str(error), remedy) from None
    if not isinstance(content, dict):
        raise UserError(f"{path} must hold one JSON object", f"found {type(content).__name__}", remedy)
    for column in MACHINE_COLUMNS:
        value = content.get(column.name)
        numerical = isinstance(value, int | float) and not isinstance(value, bool) and value >= (column.low or 0)
        if column.kind is Kind.NUMERICAL and not numerical:
            content[column.name] = None
    return content
