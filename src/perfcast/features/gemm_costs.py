"""Amounts of a matrix product on cores, each of which takes its own time: the terms of the roofline model."""

from __future__ import annotations

import numpy as np

from perfcast.features.feature_math import append, feature, require
from perfcast.features.gemm import ELEMENT_BYTES
from perfcast.schema.table import Table, Tag

REQUIRES: tuple[str, ...] = ("m", "n", "k", "dtype", "transpose_a", "transpose_b", "threads")
BLOCK_M, BLOCK_N, BLOCK_K = 16, 16, 4
"""What a register kernel computes and steps through at once, near enough for any of them."""
PANEL_K = 256
"""Length of the inner products after which a blocked product goes over C once more."""


def derive(table: Table) -> Table:
    """Append the amounts to a table of matrix products, tagged COST, and what a rate counts, tagged WORK.

    A blocked product computes whole register blocks, packs A and B once, and goes over C once per panel; operands that
    lie transposed are packed with strides (Goto and van de Geijn, 2008, ACM TOMS 34(3)). Threads share the
    operations; memory and caches serve them together.
    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    element = frame["dtype"].map(ELEMENT_BYTES).astype("float64") / 1e6
    m, n, k, threads = (frame[name] for name in ("m", "n", "k", "threads"))
    a, b, c = element * m * k, element * k * n, element * m * n
    filled = np.ceil(m / BLOCK_M) * BLOCK_M * np.ceil(n / BLOCK_N) * BLOCK_N * np.ceil(k / BLOCK_K) * BLOCK_K
    cost, work = (Tag.COST,), (Tag.WORK,)
    return append(
        table,
        [
            (feature("work_mflop", "problem", "MFLOP", "operations, 2 m n k", tags=work), 2 * m * n * k / 1e6),
            (
                feature("thread_mflop", "kernel", "MFLOP", "operations of one thread", tags=cost),
                2 * m * n * k / threads / 1e6,
            ),
            (
                feature("filled_mflop", "kernel", "MFLOP", "operations of one thread in whole blocks", tags=cost),
                2 * filled / threads / 1e6,
            ),
            (feature("mb_a", "problem", "MB", "bytes of A", tags=cost), a),
            (feature("mb_b", "problem", "MB", "bytes of B", tags=cost), b),
            (feature("mb_c", "problem", "MB", "bytes of C", tags=cost), c),
            (
                feature("mb_c_again", "kernel", "MB", "bytes of C, once per panel, of one thread", tags=cost),
                c * np.ceil(k / PANEL_K) / threads,
            ),
            (
                feature("mb_a_strided", "kernel", "MB", "bytes of A where it lies transposed", tags=cost),
                a * frame["transpose_a"],
            ),
            (
                feature("mb_b_strided", "kernel", "MB", "bytes of B where it lies transposed", tags=cost),
                b * frame["transpose_b"],
            ),
            (feature("further_threads", "kernel", "", "threads to be woken beside the first", tags=cost), threads - 1),
        ],
    )
