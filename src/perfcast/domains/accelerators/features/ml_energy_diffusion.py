"""Derived characteristics of a diffusion model: work of an item, which its energy grows with, and the power limits.

The peaks of a GPU are not part of the work: newer GPUs compute faster at more power, and an item takes like energy.
"""

from __future__ import annotations

import numpy as np

from perfcast.domains import read_columns
from perfcast.features.feature_math import append, arrays
from perfcast.schema.table import Table

REQUIRES = (
    "quantity",
    "active_params_1e9",
    "gpus",
    "concurrency",
    "height",
    "width",
    "frames",
    "steps",
    "power_w",
)
_COLUMNS = read_columns(__package__, "columns.csv", "ml_energy_diffusion")
_LOGS = (
    "pixels",
    "linear_work",
    "attention_work",
    "gpu_watts",
    "gpus",
    "concurrency",
    "active_params_1e9",
    "steps",
)


def derive(table: Table) -> Table:
    """Append the derived characteristics. Raises: ValueError when a column of `REQUIRES` is missing."""
    of = arrays(table, REQUIRES)
    pixels = of["height"] * of["width"] * of["frames"]
    is_power = of["quantity"].astype("U") == "watts"
    linear = 1e-6 * pixels * of["steps"] * of["active_params_1e9"]
    attention = 1e-12 * pixels**2 * of["steps"] * np.sqrt(of["active_params_1e9"])
    watts = of["gpus"] * of["power_w"]
    values = {
        "pixels": pixels,
        "linear_work": linear,
        "attention_work": attention,
        "gpu_watts": watts,
        "cost_linear": np.where(is_power, watts, linear),
        "cost_attention": np.where(is_power, 0.0, attention),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)
