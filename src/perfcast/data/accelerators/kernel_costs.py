"""Operations, bytes, tiles and waves of kernels in single precision, and their times at the peaks of a GPU.

Sources: roofline by Williams, Waterman and Patterson, 2009, CACM 52(4); tiles and waves by NVIDIA, Matrix
Multiplication Background User's Guide, and as in NeuSight, arXiv 2407.13853.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

SHAPE = ("batch", "m", "n", "k", "width")
GPU = ("fp32_gflops", "memory_gb_per_s", "sm_count", "l2_mib", "clock_mhz")
PRODUCTS = ("bmm", "linear")
"""Kinds of kernels that are matrix products."""
TILE = 128
"""Rows and columns of a tile of a product."""
TILE_ELEMENTS = 1024
"""Elements of a block of a kernel without products."""
TWO_INPUTS = frozenset({"add", "mul", "div", "pow"})
"""Element-wise operations of two tensors; others read one."""
OPERATIONS = {"gelu": 10.0, "tanh": 8.0, "pow": 8.0, "powu": 8.0, "div": 4.0, "divu": 4.0, "ln": 8.0, "softmax": 8.0}
"""Operations of an element, where more than one: divisions and exponentials take several instructions."""
_BYTES = 4.0


def kernel_costs(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the amounts of every kernel on its GPU.

    Args:
        frame: Columns `kind`, `op`, those of `SHAPE` and those of `GPU`. A product has `batch`, `m`, `n` (columns of
            its output) and `k` (its inner dimension); another kernel has `batch` rows of `width` elements.

    Shapes:
        (kernels,) each.

    Units:
        `t_*` in ms; `flops` in FLOP; `bytes` in B. The others are counts and ratios.
    """
    kind, op = (frame[name].astype("str") for name in ("kind", "op"))
    batch, m, n, k, width, peak, bandwidth, sms, _, clock = (
        np.asarray(frame[name], dtype=float) for name in (*SHAPE, *GPU)
    )
    product = np.asarray(kind.isin(list(PRODUCTS)))
    elements = batch * width
    operations, inputs = op.map(OPERATIONS).fillna(1.0).to_numpy(), np.where(op.isin(list(TWO_INPUTS)), 2.0, 1.0)
    flops = np.where(product, 2 * batch * m * n * k, elements * operations)
    moved = _BYTES * np.where(product, batch * (m * k + k * n + m * n), elements * (inputs + 1))
    down, across = np.ceil(m / TILE), np.ceil(n / TILE)
    tiles = np.where(product, batch * down * across, np.ceil(elements / TILE_ELEMENTS))
    output = np.where(product & (m * n > 0), m * n, np.nan)
    area = np.where(product, down * across * TILE**2 / output, 1.0)
    loads = np.where(product, _BYTES * batch * (k * (down * n + across * m) + m * n), moved)
    depth = np.where(product, k, width)
    waves = tiles / sms
    started = np.ceil(waves)
    compute = flops / peak / 1e6
    return {
        "flops": flops,
        "bytes": moved,
        "tiles": tiles,
        "area": area,
        "depth": depth,
        "waves": waves,
        "started": started,
        "t_compute": compute,
        "t_waves": compute * area * started / waves,
        "t_memory": moved / bandwidth / 1e6,
        "t_loads": loads / bandwidth / 1e6,
        "t_cycles": started * depth / clock / 1e3,
    }


def kernel_light(amounts: dict[str, np.ndarray]) -> np.ndarray:
    """Return the time of every kernel at the speed of light: the longer of operations and bytes at the peaks, in ms."""
    return np.asarray(np.maximum(amounts["t_compute"], amounts["t_memory"]))
