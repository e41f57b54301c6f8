"""Derived characteristics of a matrix product: work, traffic, shape, alignment, and what fits into which cache."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.features.feature_math import Pair, append, declared, feature, log, logs, ratio, require
from perfcast.schema.table import Column, Kind, Role, Table, Tag

REQUIRES: tuple[str, ...] = (
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
ELEMENT_BYTES = {"bfloat16": 2.0, "float32": 4.0, "float64": 8.0}
TILES = (4, 8, 16, 64)
"""Block sizes in elements that kernels are written for: vector registers, register tiles, cache blocks."""

PAGE_BYTES = 4096
"""Row strides that are a multiple of this fall into few sets of a first-level cache."""

_SIDES = ["m", "n", "k"]
_LOGS = (
    *_SIDES,
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


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of matrix products.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    element = frame["dtype"].map(ELEMENT_BYTES).astype("float64")
    touched = element * (frame["m"] * frame["k"] + frame["k"] * frame["n"] + frame["m"] * frame["n"])
    derived = [
        (feature("element_bytes", "problem", "B", "bytes of one element"), element),
        *_work(frame, touched),
        *_shape(frame),
        *_alignment(frame),
        *_strides(frame, element),
        *_footprint(frame, touched),
    ]
    extended = append(table, derived).with_columns([_cache_level(frame, touched)])
    return append(extended, logs(declared(extended, _LOGS)))


def _work(frame: pd.DataFrame, touched: pd.Series) -> list[Pair]:
    flops = 2 * frame["m"] * frame["n"] * frame["k"]
    scaling = (Tag.SCALING,)
    return [
        (feature("mflop", "problem", "MFLOP", "operations, 2 m n k", tags=scaling), flops / 1e6),
        (feature("mb_touched", "problem", "MB", "bytes of A, B and C together"), touched / 1e6),
        (
            feature("flop_per_byte", "problem", "FLOP/B", "arithmetic intensity: operations / bytes", tags=scaling),
            ratio(flops, touched),
        ),
        (
            feature("mflop_per_thread", "kernel", "MFLOP", "operations / threads"),
            ratio(flops / 1e6, frame["threads"]),
        ),
        (
            feature("thread_share", "kernel", "", "threads / logical processors of the machine"),
            ratio(frame["threads"], frame["cores"]),
        ),
    ]


def _shape(frame: pd.DataFrame) -> list[Pair]:
    """Return the extreme sides, and aspect ratios as logarithms: 2 : 1 and 1 : 2 are equally far from square."""
    smallest, largest = frame[_SIDES].min(axis=1), frame[_SIDES].max(axis=1)
    return [
        (feature("side_min", "problem", "", "smallest of m, n, k", tags=(Tag.SCALING,)), smallest),
        (feature("side_max", "problem", "", "largest of m, n, k"), largest),
        (feature("aspect_side", "problem", "ln", "ln(largest / smallest side)"), log(ratio(largest, smallest))),
        (feature("aspect_mn", "problem", "ln", "ln(m / n)", low=None), log(ratio(frame["m"], frame["n"]))),
        (
            feature("aspect_k", "problem", "ln", "ln(k / sqrt(m n)): above 0 for long inner products", low=None),
            log(ratio(frame["k"], (frame["m"] * frame["n"]) ** 0.5)),
        ),
    ]


def _alignment(frame: pd.DataFrame) -> list[Pair]:
    """Return how many powers of two divide each side, and how full blocks of the usual sizes are."""
    most = max(TILES)
    meaning = f"log2 of the largest power of two up to {most} that divides it"
    pairs = [
        (feature(f"align_{side}", "problem", "log2", meaning, high=np.log2(most)), _power_of_two(frame[side], most))
        for side in _SIDES
    ]
    for tile in TILES:
        m, n, k = (frame[side] / (np.ceil(frame[side] / tile) * tile) for side in _SIDES)
        meaning = f"share of useful work when every side is filled up to a multiple of {tile}"
        pairs.append((feature(f"tile_use_{tile}", "problem", "", meaning, high=1), m * n * k))
    return pairs


def _strides(frame: pd.DataFrame, element: pd.Series) -> list[Pair]:
    # A row of A as it lies in memory holds k elements, or m where A lies transposed; one of B holds n, or k.
    strides = {
        "a": frame["k"].where(frame["transpose_a"] == 0, frame["m"]),
        "b": frame["n"].where(frame["transpose_b"] == 0, frame["k"]),
    }
    meaning = f"log2 of the largest power of two up to {PAGE_BYTES} that divides the bytes of a row in memory"
    high = np.log2(PAGE_BYTES)
    return [
        (
            feature(f"stride_align_{operand}", "kernel", "log2", meaning, high=high),
            _power_of_two(stride * element, PAGE_BYTES),
        )
        for operand, stride in strides.items()
    ]


def _power_of_two(values: pd.Series, most: int) -> pd.Series:
    """Return log2 of the largest power of two up to `most` that divides each value; missing stays missing."""
    divisor = np.gcd(values.fillna(1).astype("int64"), most)
    return pd.Series(np.log2(divisor), index=values.index).where(values.notna())


def _footprint(frame: pd.DataFrame, touched: pd.Series) -> list[Pair]:
    return [
        (
            feature(f"footprint_over_{level}", "machine", "", f"bytes touched / {level.upper()} of the machine"),
            ratio(touched / 1024, frame[f"{level}_kib"]),
        )
        for level in ("l2", "l3")
    ]


def _cache_level(frame: pd.DataFrame, touched: pd.Series) -> Pair:
    """Return the name of the smallest cache level that holds A, B and C, missing where a size is unknown."""
    level = pd.Series("memory", index=frame.index, dtype="str")
    for name in ("l3", "l2", "l1d"):
        level = level.mask(touched / 1024 <= frame[f"{name}_kib"], name)
    known = frame[["l1d_kib", "l2_kib", "l3_kib"]].notna().all(axis=1) & touched.notna()
    meaning = "smallest cache level that holds A, B and C"
    column = Column("fits_in", Kind.CATEGORICAL, Role.FEATURE, "machine", meaning=meaning, tags=(Tag.SLICE,))
    return column, level.where(known)
