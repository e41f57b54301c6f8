"""Derived characteristics of a matrix product: work, traffic, shape, alignment, and what fits into which cache."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.domains import read_columns
from perfcast.features.feature_math import (
    Values,
    append,
    append_cache_level,
    append_logs,
    log,
    ratio,
    require,
)
from perfcast.schema.table import Table

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
ELEMENT_BYTES = {
    "float16": 2.0,
    "bfloat16": 2.0,
    "float32": 4.0,
    "float64": 8.0,
}
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
_COLUMNS = read_columns(__package__, "columns.csv", "gemm")


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
