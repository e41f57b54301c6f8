"""Amounts of a matrix product on cores, each of which takes its own time: the terms of the roofline model."""

from __future__ import annotations

import numpy as np

from perfcast.domains import read_columns
from perfcast.domains.gemm.features.gemm import element_bytes
from perfcast.features.feature_math import append, require
from perfcast.schema.table import Table

REQUIRES = ("m", "n", "k", "dtype", "transpose_a", "transpose_b", "threads")
BLOCK_M = 16
BLOCK_N = 16
BLOCK_K = 4
"""Block that a register kernel computes and steps through at once, nearly right for all of them."""
PANEL_K = 256
"""Length of the inner products after which a blocked product reads and writes C once more."""

_COLUMNS = read_columns(__package__, "columns.csv", "gemm_costs")


def derive(table: Table) -> Table:
    """Append the amounts to a table of matrix products, tagged COST, and what a rate counts, tagged WORK.

    A blocked product computes whole register blocks, packs A and B once, and passes over C once per panel. Transposed
    operands are packed with strides (Goto and van de Geijn, 2008, ACM TOMS 34(3)). Threads share the operations; memory
    and caches serve them together.
    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    element = element_bytes(frame) / 1e6
    m = frame["m"]
    n = frame["n"]
    k = frame["k"]
    threads = frame["threads"]
    a = element * m * k
    b = element * k * n
    c = element * m * n
    # from left to right, so that it is rounded alike whatever is named
    filled = np.ceil(m / BLOCK_M) * BLOCK_M * np.ceil(n / BLOCK_N) * BLOCK_N * np.ceil(k / BLOCK_K) * BLOCK_K
    values = {
        "work_mflop": 2 * m * n * k / 1e6,
        "thread_mflop": 2 * m * n * k / threads / 1e6,
        "filled_mflop": 2 * filled / threads / 1e6,
        "mb_a": a,
        "mb_b": b,
        "mb_c": c,
        "mb_c_again": c * np.ceil(k / PANEL_K) / threads,
        "mb_a_strided": a * frame["transpose_a"],
        "mb_b_strided": b * frame["transpose_b"],
        "further_threads": threads - 1,
    }
    return append(table, _COLUMNS, values)
