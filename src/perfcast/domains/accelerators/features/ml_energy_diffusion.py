"""Derived characteristics of a diffusion model: work of a batch at the peak, and its energy at the power limit."""

from __future__ import annotations

import numpy as np

from perfcast.features.feature_math import append, arrays, feature, ratio
from perfcast.schema.table import Table, Tag

REQUIRES = (
    *("quantity", "active_params_1e9", "gpus", "concurrency", "height", "width", "frames", "steps"),
    *("bf16_tflops", "power_w"),
)
_COLUMNS = (
    feature("pixels", "load", "", "pixels of all frames of an item", 0),
    feature("t_linear", "load", "", "1e9 parameters x pixels x steps of a batch / peak", 0),
    feature("t_attention", "load", "", "the same for attention, which grows with the square of the pixels", 0),
    feature("gpu_watts", "gpu", "W", "power limits of all GPUs", 0),
    feature("cost_linear", "load", "", "energy of the layers at the power limit, or power", 0, tags=[Tag.COST]),
    feature("cost_attention", "load", "", "energy of attention; 0 for power", 0, tags=[Tag.COST]),
)
_LOGS = (*("pixels", "t_linear", "t_attention", "gpu_watts"), *("gpus", "concurrency", "active_params_1e9", "steps"))


def derive(table: Table) -> Table:
    """Append the derived characteristics. Raises: ValueError when a column of `REQUIRES` is missing."""
    of = arrays(table, REQUIRES)
    pixels, is_power = of["height"] * of["width"] * of["frames"], of["quantity"].astype("U") == "watts"
    steps = ratio(1e-6 * pixels * of["steps"] * of["concurrency"], of["gpus"] * of["bf16_tflops"])
    linear = steps * of["active_params_1e9"]
    attention = 1e-6 * pixels * steps * np.sqrt(of["active_params_1e9"])
    watts = of["gpus"] * of["power_w"]
    values = {
        **{"pixels": pixels, "t_linear": linear, "t_attention": attention, "gpu_watts": watts},
        "cost_linear": np.where(is_power, watts, ratio(linear * watts, of["concurrency"])),
        "cost_attention": np.where(is_power, 0.0, ratio(attention * watts, of["concurrency"])),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)
