"""Derived characteristics of a matrix product: work, traffic, shape, alignment, and what fits into which cache."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.features.feature_math import (
    Values,
    append,
    append_cache_level,
    append_logs,
    feature,
    log,
    ratio,
    require,
)
from perfcast.schema.table import Table, Tag

REQUIRES = (
    "m",
    "n",
    "k",
    "dtype",
    "transpose_a",
    "transpose_b",
    "threads",
    "cores",
    "l1d_kib",
    "l2_kib",
    "l3_kib",
)
ELEMENT_BYTES = {"float16": 2.0, "bfloat16": 2.0, "float32": 4.0, "float64": 8.0}
TILES = (4, 8, 16, 64)
"""Block sizes in elements that kernels are written for: vector registers, register tiles, cache blocks."""

PAGE_BYTES = 4096
"""Row strides that are a multiple of this fall into few sets of a first-level cache."""

_SIDES = ["m", "n", "k"]
_LOGS = (
    "m",
    "n",
    "k",
    "threads",
    "mflop",
    "mb_touched",
    "flop_per_byte",
    "side_min",
    "side_max",
    "mflop_per_thread",
    "footprint_over_l2",
    "footprint_over_l3",
)
_ALIGNED = f"log2 of the largest power of two up to {max(TILES)} that divides it"
_FILLED = "share of useful work when every side is filled up to a multiple of %d"
_STRIDE = f"log2 of the largest power of two up to {PAGE_BYTES} that divides the bytes of a row in memory"
_COLUMNS = (
    feature("element_bytes", "problem", "B", "bytes of one element"),
    feature("mflop", "problem", "MFLOP", "operations, 2 m n k", tags=[Tag.SCALING]),
    feature("mb_touched", "problem", "MB", "bytes of A, B and C together"),
    feature(
        "flop_per_byte",
        "problem",
        "FLOP/B",
        "arithmetic intensity: operations / bytes",
        tags=[Tag.SCALING],
    ),
    feature("mflop_per_thread", "kernel", "MFLOP", "operations / threads"),
    feature("thread_share", "kernel", "", "threads / logical processors of the machine"),
    feature("side_min", "problem", "", "smallest of m, n, k", tags=[Tag.SCALING]),
    feature("side_max", "problem", "", "largest of m, n, k"),
    # Logarithms of aspect ratios: 2 : 1 and 1 : 2 are equally far from square.
    feature("aspect_side", "problem", "ln", "ln(largest / smallest side)"),
    feature("aspect_mn", "problem", "ln", "ln(m / n)"),
    feature("aspect_k", "problem", "ln", "ln(k / sqrt(m n)): above 0 for long inner products"),
    *(feature(f"align_{side}", "problem", "log2", _ALIGNED, high=np.log2(max(TILES))) for side in _SIDES),
    *(feature(f"tile_use_{tile}", "problem", "", _FILLED % tile, high=1) for tile in TILES),
    *(feature(f"stride_align_{operand}", "kernel", "log2", _STRIDE, high=np.log2(PAGE_BYTES)) for operand in "ab"),
    feature("footprint_over_l2", "machine", "", "bytes touched / L2 of the machine"),
    feature("footprint_over_l3", "machine", "", "bytes touched / L3 of the machine"),
)


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of matrix products.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    m = frame["m"]
    n = frame["n"]
    k = frame["k"]
    threads = frame["threads"]
    element = element_bytes(frame)
    touched = element * (m * k + k * n + m * n)
    flops = 2 * m * n * k
    smallest = frame[_SIDES].min(axis=1)
    largest = frame[_SIDES].max(axis=1)
    # A row of A as it lies in memory holds k elements, or m where A lies transposed; one of B holds n, or k.
    stride_a = k.where(frame["transpose_a"] == 0, m)
    stride_b = n.where(frame["transpose_b"] == 0, k)
    values: dict[str, Values] = {
        "element_bytes": element,
        "mflop": flops / 1e6,
        "mb_touched": touched / 1e6,
        "flop_per_byte": ratio(flops, touched),
        "mflop_per_thread": ratio(flops / 1e6, threads),
        "thread_share": ratio(threads, frame["cores"]),
        "side_min": smallest,
        "side_max": largest,
        "aspect_side": log(ratio(largest, smallest)),
        "aspect_mn": log(ratio(m, n)),
        "aspect_k": log(ratio(k, (m * n) ** 0.5)),
        "stride_align_a": _power_of_two(stride_a * element, PAGE_BYTES),
        "stride_align_b": _power_of_two(stride_b * element, PAGE_BYTES),
        "footprint_over_l2": ratio(touched / 1024, frame["l2_kib"]),
        "footprint_over_l3": ratio(touched / 1024, frame["l3_kib"]),
    }
    for side in _SIDES:
        values[f"align_{side}"] = _power_of_two(frame[side], max(TILES))
    for tile in TILES:
        values[f"tile_use_{tile}"] = _filled(m, tile) * _filled(n, tile) * _filled(k, tile)
    shares = {level: touched / 1024 / frame[f"{level}_kib"] for level in ("l3", "l2", "l1d")}
    extended = append_cache_level(append(table, _COLUMNS, values), shares, "A, B and C")
    return append_logs(extended, _LOGS)


def element_bytes(frame: pd.DataFrame) -> pd.Series:
    """Return the bytes of one element of every product; missing for an unknown type."""
    sizes: pd.Series = frame["dtype"].map(ELEMENT_BYTES).astype("float64")
    return sizes


def _filled(side: pd.Series, tile: int) -> pd.Series:
    """Return the share of a side in whole tiles that cover it."""
    share: pd.Series = side / (np.ceil(side / tile) * tile)
    return share


def _power_of_two(values: pd.Series, limit: int) -> pd.Series:
    """Return log2 of the largest power of two up to `limit` that divides each value; missing stays missing."""
    divisor = np.gcd(values.fillna(1).astype("int64"), limit)
    return pd.Series(np.log2(divisor), index=values.index).where(values.notna())
