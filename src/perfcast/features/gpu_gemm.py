"""Derived characteristics of a matrix product on a GPU: work, traffic, tiles and the waves in which they run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.features.feature_math import Pair, append, declared, feature, logs, ratio, require
from perfcast.schema.table import Table, Tag

REQUIRES: tuple[str, ...] = (
    *("m", "n", "k", "dtype", "transpose_a", "transpose_b", "beta", "tile_m", "tile_n", "tile_k"),
    *("sms", "lanes", "boost_mhz", "l2_mib", "gb_per_s"),
)
ELEMENT_BYTES = {"float16": 2.0, "float32": 4.0, "float64": 8.0}

_LOGS = ("m", "n", "k", "mflop", "mb_touched", "flop_per_byte", "tiles", "waves", "wave_steps", "touched_over_l2")


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of matrix products on GPUs.

    Blocks of threads compute tiles of C, and as many tiles as there are multiprocessors run at once: a wave. A started
    wave takes as long as a full one (wave quantization; NVIDIA, Matrix Multiplication Background User's Guide), so time
    follows waves and not operations where there are few tiles. Terms of the roofline model are tagged COST.
    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    element = frame["dtype"].map(ELEMENT_BYTES).astype("float64")
    a, b, c = (frame["m"] * frame["k"], frame["k"] * frame["n"], frame["m"] * frame["n"])
    old = c.where(frame["beta"] != 0, 0.0)
    flops, touched = 2 * frame["m"] * frame["n"] * frame["k"], element * (a + b + c + old)
    rows, across = _whole(frame["m"] / frame["tile_m"]), _whole(frame["n"] / frame["tile_n"])
    tiles = rows * across
    waves = _whole(tiles / frame["sms"])
    steps = waves * _whole(frame["k"] / frame["tile_k"])
    # each tile loads its rows of A and its columns of B
    loaded = element * frame["k"] * (rows * frame["n"] + across * frame["m"])
    peak = 2 * frame["sms"] * frame["lanes"] * frame["boost_mhz"] * 1e6
    cost, scaling = (Tag.COST,), (Tag.SCALING,)
    pairs: list[Pair] = [
        (feature("element_bytes", "problem", "B", "bytes of one element"), element),
        (feature("mflop", "problem", "MFLOP", "operations, 2 m n k", tags=(*cost, *scaling)), flops / 1e6),
        (feature("mb_touched", "problem", "MB", "bytes of A, B and C together", tags=cost), touched / 1e6),
        (feature("mb_written", "problem", "MB", "bytes of C", tags=cost), element * c / 1e6),
        (feature("mb_old", "kernel", "MB", "bytes of the old C where it is read", tags=cost), element * old / 1e6),
        (
            feature("mb_loaded", "kernel", "MB", "bytes that the tiles load, repetitions included", tags=cost),
            loaded / 1e6,
        ),
        (feature("flop_per_byte", "problem", "FLOP/B", "arithmetic intensity", tags=scaling), ratio(flops, touched)),
        (feature("tiles", "kernel", "", "tiles of C"), tiles),
        (
            feature("waves", "kernel", "", "waves of tiles, the last one perhaps not full", tags=(*cost, *scaling)),
            waves,
        ),
        (feature("wave_steps", "kernel", "", "waves x steps along k", tags=(*cost, *scaling)), steps),
        (feature("wave_use", "kernel", "", "share of the waves that is full", high=1), tiles / (waves * frame["sms"])),
        (
            feature("tile_use", "kernel", "", "share of the tiles that lies inside C", high=1),
            ratio(c, tiles * frame["tile_m"] * frame["tile_n"]),
        ),
        (feature("touched_over_l2", "device", "", "bytes touched / L2"), ratio(touched / 2**20, frame["l2_mib"])),
        (feature("compute_ms", "device", "ms", "operations at the peak of the device"), 1e3 * ratio(flops, peak)),
        (
            feature("memory_ms", "device", "ms", "bytes touched at the bandwidth of the memory"),
            ratio(touched / 1e6, frame["gb_per_s"]),
        ),
    ]
    extended = append(table, pairs)
    return append(extended, logs(declared(extended, _LOGS)))


def _whole(shares: pd.Series) -> pd.Series:
    """Return how many whole pieces hold the given share of pieces."""
    return pd.Series(np.ceil(shares), index=shares.index)
