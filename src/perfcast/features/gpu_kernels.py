"""Derived characteristics of a kernel in single precision: times at the GPU's peaks, tiles and waves, ratios.

Sources: roofline by Williams, Waterman and Patterson, 2009, CACM 52(4); tiles and waves by NVIDIA, Matrix
Multiplication Background User's Guide, and as in NeuSight, arXiv 2407.13853.
"""

from __future__ import annotations

import numpy as np

from perfcast.features.feature_math import append, feature, log, ratio, require
from perfcast.schema.table import Table, Tag

REQUIRES = (
    *("kind", "op", "batch", "m", "n", "k", "width"),
    *("fp32_gflops", "memory_gb_per_s", "sm_count", "l2_mib", "clock_mhz"),
)
TILE = 128
"""Rows and columns of a tile of a product."""
TILE_ELEMENTS = 1024
"""Elements of a block of a kernel without products."""
TWO_INPUTS = frozenset({"add", "mul", "div", "pow"})
"""Element-wise operations of two tensors; others read one."""
OPERATIONS = {"gelu": 10.0, "tanh": 8.0, "pow": 8.0, "powu": 8.0, "div": 4.0, "divu": 4.0, "ln": 8.0, "softmax": 8.0}
"""Operations of an element, where more than one: divisions and exponentials take several instructions."""
_BYTES = 4.0

_COST, _BOTH = [Tag.COST], [Tag.BOUND, Tag.COST]
_COLUMNS = (
    feature("t_compute", "time", "ms", "operations at the peak", tags=_BOTH),
    feature("t_waves", "time", "ms", "operations of whole tiles at the peak, with the last wave full", tags=_COST),
    feature("t_memory", "time", "ms", "bytes at the memory bandwidth", tags=_BOTH),
    feature("t_loads", "time", "ms", "bytes that tiles load, with repetitions, at the memory bandwidth", tags=_COST),
    feature("t_cycles", "time", "ms", "waves x steps of their inner loops / clock", tags=_COST),
    feature("log_light", "ratio", "ln(ms)", "logarithm of the longer of the times at the peaks"),
    feature("log_intensity", "ratio", "ln", "logarithm of the arithmetic intensity over the ridge point"),
    feature("log_over_l2", "ratio", "ln", "logarithm of bytes / second-level cache"),
    feature("log_tiles_per_sm", "ratio", "ln", "logarithm of tiles / multiprocessors"),
    feature("log_tail", "ratio", "ln", "logarithm of started waves / needed waves: wave quantization"),
    feature("log_padding", "ratio", "ln", "logarithm of the area of the tiles / that of the output"),
    feature("log_depth", "ratio", "ln", "logarithm of the inner loop of a tile"),
    feature("log_m", "ratio", "ln", "logarithm of the rows of a product"),
    feature("log_n", "ratio", "ln", "logarithm of the columns of a product"),
    feature("log_batch", "ratio", "ln", "logarithm of the products, or rows"),
    feature("log_width", "ratio", "ln", "logarithm of the elements of a row"),
    feature("tile_flops", "tile", "FLOP", "operations of a tile"),
    feature("tile_bytes", "tile", "B", "share of a tile in all bytes: repeated loads are served by the cache"),
    feature("tiles", "tile", "", "tiles of the output"),
)


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of kernels.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    kind, op = (frame[name].astype("str") for name in ("kind", "op"))
    batch, m, n, k, width, peak, bandwidth, sms, l2, clock = (
        np.asarray(frame[name], dtype=float) for name in REQUIRES if name not in {"kind", "op"}
    )
    product = np.asarray(kind.isin(["bmm", "linear"]))
    elements = batch * width
    operations, inputs = op.map(OPERATIONS).fillna(1.0).to_numpy(), np.where(op.isin(list(TWO_INPUTS)), 2.0, 1.0)
    flops = np.where(product, 2 * batch * m * n * k, elements * operations)
    moved = _BYTES * np.where(product, batch * (m * k + k * n + m * n), elements * (inputs + 1))
    down, across = np.ceil(m / TILE), np.ceil(n / TILE)
    tiles = np.where(product, batch * down * across, np.ceil(elements / TILE_ELEMENTS))
    area = np.where(product, ratio(down * across * TILE**2, m * n), 1.0)
    loads = np.where(product, _BYTES * batch * (k * (down * n + across * m) + m * n), moved)
    depth = np.where(product, k, width)
    waves = tiles / sms
    started = np.ceil(waves)
    compute, memory = flops / peak / 1e6, moved / bandwidth / 1e6
    values = {
        "t_compute": compute,
        "t_waves": compute * area * started / waves,
        "t_memory": memory,
        "t_loads": loads / bandwidth / 1e6,
        "t_cycles": started * depth / clock / 1e3,
        "log_light": log(np.maximum(compute, memory)),
        "log_intensity": log(ratio(compute, memory)),
        "log_over_l2": log(moved / 2**20 / l2),
        "log_tiles_per_sm": log(waves),
        "log_tail": log(started / waves),
        "log_padding": log(area),
        "log_depth": log(depth),
        "log_m": log(m),
        "log_n": log(n),
        "log_batch": log(batch),
        "log_width": log(width),
        "tile_flops": flops * area / tiles,
        "tile_bytes": moved / tiles,
        "tiles": tiles,
    }
    return append(table, _COLUMNS, values)
