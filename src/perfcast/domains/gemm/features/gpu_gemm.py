"""Derived characteristics of a matrix product on a GPU: work, traffic, tiles and the waves in which they run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.domains import read_columns
from perfcast.domains.gemm.features.gemm import element_bytes
from perfcast.features.feature_math import append, ratio, require
from perfcast.schema.table import Table

REQUIRES = (
    "m",
    "n",
    "k",
    "dtype",
    "transpose_a",
    "transpose_b",
    "beta",
    "tile_m",
    "tile_n",
    "tile_k",
    "sms",
    "lanes",
    "boost_mhz",
    "l2_mib",
    "gb_per_s",
)
_LOGS = (
    "m",
    "n",
    "k",
    "mflop",
    "mb_touched",
    "flop_per_byte",
    "tiles",
    "waves",
    "wave_steps",
    "touched_over_l2",
)
_COLUMNS = read_columns(__package__, "columns.csv", "gpu_gemm")


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of matrix products on GPUs.

    Blocks of threads compute tiles of C, and as many tiles as there are multiprocessors run at once: a wave. A started
    wave takes as long as a full one (wave quantization; NVIDIA, Matrix Multiplication Background User's Guide), so time
    follows waves and not operations where there are few tiles. Terms of the roofline model are tagged COST.
    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    m = frame["m"]
    n = frame["n"]
    k = frame["k"]
    sms = frame["sms"]
    element = element_bytes(frame)
    c = m * n
    old = c.where(frame["beta"] != 0, 0.0)
    flops = 2 * m * n * k
    touched = element * (m * k + k * n + c + old)
    rows = _whole(m / frame["tile_m"])
    across = _whole(n / frame["tile_n"])
    tiles = rows * across
    waves = _whole(tiles / sms)
    # each tile loads its rows of A and its columns of B
    loaded = element * k * (rows * n + across * m)
    peak = 2 * sms * frame["lanes"] * frame["boost_mhz"] * 1e6
    values = {
        "element_bytes": element,
        "mflop": flops / 1e6,
        "mb_touched": touched / 1e6,
        "mb_written": element * c / 1e6,
        "mb_old": element * old / 1e6,
        "mb_loaded": loaded / 1e6,
        "flop_per_byte": ratio(flops, touched),
        "tiles": tiles,
        "waves": waves,
        "wave_steps": waves * _whole(k / frame["tile_k"]),
        "wave_use": tiles / (waves * sms),
        "tile_use": ratio(c, tiles * frame["tile_m"] * frame["tile_n"]),
        "touched_over_l2": ratio(touched / 2**20, frame["l2_mib"]),
        "compute_ms": 1e3 * ratio(flops, peak),
        "memory_ms": ratio(touched / 1e6, frame["gb_per_s"]),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)


def _whole(shares: pd.Series) -> pd.Series:
    """Return the number of whole pieces that hold the given share of pieces."""
    return pd.Series(np.ceil(shares), index=shares.index)
