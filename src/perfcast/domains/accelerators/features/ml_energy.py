"""Derived characteristics of a served model: times of a decoding step at the peaks, and amounts that power grows with.

A step reads the weights once and the caches of all requests, and computes a token of each. A mixture of experts reads
the experts that any request needs. Terms tagged COST are of the unit of the row's quantity: ms for times, W for power.
"""

from __future__ import annotations

import numpy as np

from perfcast.domains import read_columns
from perfcast.features.feature_math import append, arrays, ratio
from perfcast.schema.table import Table

REQUIRES = (
    "quantity",
    "params_1e9",
    "active_params_1e9",
    "gpus",
    "data_parallel",
    "concurrency",
    "weight_bytes",
    "bf16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "memory_gb_per_s",
    "memory_gib",
    "link_gb_per_s",
    "power_w",
)
_IDLE = 0.15
_COLUMNS = read_columns(__package__, "columns.csv", "ml_energy")
_LOGS = (
    "t_weights",
    "t_cache",
    "t_compute",
    "concurrency",
    "gpus",
    "params_1e9",
    "active_params_1e9",
    "gpu_watts",
)


def derive(table: Table) -> Table:
    """Append the derived characteristics. Raises: ValueError when a column of `REQUIRES` is missing."""
    of = arrays(table, REQUIRES)
    gpus = of["gpus"]
    batch = of["concurrency"]
    size = of["weight_bytes"]
    active = of["active_params_1e9"]
    total = of["params_1e9"]
    of_eight = np.where(size < 2, of["fp8_tflops"], 0.0)
    peaks = np.where(size < 1, np.nan_to_num(of["fp4_tflops"]), of_eight)
    peak = np.fmax(peaks, of["bf16_tflops"])
    touched = np.maximum(total * (1 - (1 - np.minimum(active / total, 1.0)) ** batch), active)
    bandwidth = gpus * of["memory_gb_per_s"]
    weights = ratio(1e3 * touched * size, bandwidth)
    cache = ratio(batch * np.sqrt(active), bandwidth) * 1e3
    compute = ratio(2 * active * batch, gpus * peak)
    exchange = np.where(gpus > 1, ratio(batch * np.sqrt(active), of["link_gb_per_s"]), 0.0)
    use = ratio(compute, compute + weights + cache)
    watts = gpus * of["power_w"]
    quantity = of["quantity"].astype(str)
    is_power = np.char.endswith(quantity.astype("U"), "watts")
    per = np.where(quantity == "token_ms", batch, 1.0)
    values = {
        "t_weights": weights,
        "t_cache": cache,
        "t_compute": compute,
        "t_exchange": exchange,
        "use": use,
        "weights_share": ratio(total * size, gpus * of["memory_gib"]),
        "gpu_watts": watts,
        "cost_weights": np.where(is_power, watts * _IDLE, weights / per),
        "cost_cache": np.where(is_power, watts * (1 - use), cache / per),
        "cost_compute": np.where(is_power, watts * use, compute / per),
        "cost_exchange": np.where(is_power, 0.0, exchange / per),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)
