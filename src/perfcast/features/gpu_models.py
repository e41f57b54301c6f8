"""Derived characteristics of a whole model on a GPU: sums over its kinds of kernels, shares and ratios.

Sources: roofline by Williams, Waterman and Patterson, 2009, CACM 52(4); sums of kernels as in Lee et al., NeuSight,
2025, ASPLOS.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from perfcast.features.feature_math import append, feature, log, ratio, require
from perfcast.schema.table import Table, Tag

KINDS = ("bmm", "linear", "element_wise", "layer_norm", "softmax", "copy")
"""Kinds of kernels whose sums the table has."""
AMOUNTS = ("kernels", "flops", "bytes", "part", "fitted")
REQUIRES = (
    *(f"{amount}_{kind}" for amount in AMOUNTS for kind in KINDS),
    *("fp32_gflops", "memory_gb_per_s", "l2_mib", "sm_count"),
)
_NOT_STARTED = "copy"
"""Kind whose number of kernels is unknown: many copies are views, which nothing moves."""

_COLUMNS = (
    feature("t_light", "time", "ms", "all kernels at the speed of light, one after the other", tags=[Tag.BOUND]),
    feature("t_kernels", "time", "ms", "all kernels by rooflines of other GPUs", tags=[Tag.ESTIMATE]),
    feature("t_compute", "time", "ms", "all operations at the peak"),
    feature("t_memory", "time", "ms", "all bytes at the memory bandwidth"),
    feature("kernels", "time", "", "kernels that are started, copies aside", tags=[Tag.COST]),
    feature("balance", "gpu", "FLOP/B", "peak / memory bandwidth"),
    *(feature(f"share_{kind}", "ratio", "", f"share of {kind} in the time at the speed of light") for kind in KINDS),
    feature("log_light", "ratio", "ln(ms)", "logarithm of the time at the speed of light"),
    feature("log_kernels", "ratio", "ln(ms)", "logarithm of the time by rooflines of other GPUs"),
    feature("log_slowdown", "ratio", "ln", "logarithm of the time by rooflines of other GPUs / speed of light"),
    feature("log_intensity", "ratio", "ln", "logarithm of the arithmetic intensity over the ridge point"),
    feature("log_light_per_kernel", "ratio", "ln(ms)", "logarithm of the mean time of a kernel at the speed of light"),
    feature("log_bytes_over_l2", "ratio", "ln", "logarithm of the mean bytes of a kernel / second-level cache"),
    feature("log_l2_per_sm", "gpu", "ln(MiB)", "logarithm of the second-level cache of a multiprocessor"),
)


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of model runs.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    peak, bandwidth, l2, sms = (
        np.asarray(frame[name], dtype=float) for name in ("fp32_gflops", "memory_gb_per_s", "l2_mib", "sm_count")
    )
    by_kind = {
        amount: {kind: np.asarray(frame[f"{amount}_{kind}"], dtype=float) for kind in KINDS} for amount in AMOUNTS
    }
    flops, moved, light, fitted = (_add(by_kind[amount].values()) for amount in ("flops", "bytes", "part", "fitted"))
    started = _add(count for kind, count in by_kind["kernels"].items() if kind != _NOT_STARTED)
    compute, memory = flops / peak / 1e6, moved / bandwidth / 1e6
    values = {
        "t_light": light,
        "t_kernels": fitted,
        "t_compute": compute,
        "t_memory": memory,
        "kernels": started,
        "balance": ratio(peak, bandwidth),
        **{f"share_{kind}": ratio(part, light) for kind, part in by_kind["part"].items()},
        "log_light": log(light),
        "log_kernels": log(fitted),
        "log_slowdown": log(ratio(fitted, light)),
        "log_intensity": log(ratio(compute, memory)),
        "log_light_per_kernel": log(ratio(light, started)),
        "log_bytes_over_l2": log(ratio(moved / 2**20, started * l2)),
        "log_l2_per_sm": log(ratio(l2, sms)),
    }
    return append(table, _COLUMNS, values)


def _add(values: Iterable[np.ndarray]) -> np.ndarray:
    """Return the sum of arrays in their order, so that a row does not depend on others. Shapes: (n,) each."""
    return reduce(np.add, values)
