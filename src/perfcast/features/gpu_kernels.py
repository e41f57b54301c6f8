"""Derived characteristics of a kernel in single precision: times at the GPU's peaks, tiles and waves, ratios.

Sources: roofline by Williams, Waterman and Patterson, 2009, CACM 52(4); tiles and waves by NVIDIA, Matrix
Multiplication Background User's Guide, and as in NeuSight, arXiv 2407.13853.
"""

from __future__ import annotations

import numpy as np

from perfcast.data.accelerators.kernel_costs import GPU, SHAPE, kernel_costs, kernel_light
from perfcast.features.feature_math import append, feature, log, ratio, require
from perfcast.schema.table import Table, Tag

REQUIRES = ("kind", "op", *SHAPE, *GPU)

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
    amounts = kernel_costs(frame)
    batch, m, n, width, l2 = (np.asarray(frame[name], dtype=float) for name in ("batch", "m", "n", "width", "l2_mib"))
    values = {
        **amounts,
        "log_light": log(kernel_light(amounts)),
        "log_intensity": log(ratio(amounts["t_compute"], amounts["t_memory"])),
        "log_over_l2": log(amounts["bytes"] / 2**20 / l2),
        "log_tiles_per_sm": log(amounts["waves"]),
        "log_tail": log(amounts["started"] / amounts["waves"]),
        "log_padding": log(amounts["area"]),
        "log_depth": log(amounts["depth"]),
        "log_m": log(m),
        "log_n": log(n),
        "log_batch": log(batch),
        "log_width": log(width),
        "tile_flops": amounts["flops"] * amounts["area"] / amounts["tiles"],
        "tile_bytes": amounts["bytes"] / amounts["tiles"],
    }
    return append(table, _COLUMNS, values)
