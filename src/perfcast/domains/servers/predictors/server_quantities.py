"""Physical quantities of a server in natural logarithms, with unknown turbo clock and power imputed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from perfcast.domains.servers.features.server_physics import log_power_clock

_IMPUTED = ("max_turbo_mhz", "tdp_w")
_RIDGE = 1e-3

COLUMNS_READ = (
    "cores_enabled_total",
    "chips",
    "base_mhz",
    "max_turbo_mhz",
    "tdp_w",
    "cores_per_chip_of_cpu_model",
    "l3_mb_per_chip",
    "l3_mb_total",
    "mem_gbps_total",
    "power_clock_mhz",
    "flops_per_cycle",
)
"""Columns that the quantities, or the features that they stand for, are made of."""

Quantities = dict[str, np.ndarray]
"""Quantities of rows by name, (n,) each, NaN where unknown."""


@dataclass
class ServerQuantities:
    """Natural logarithms of cores, chips, turbo, power-limited clock, W per core, GB/s and last-level cache.

    The newest CPU models, which are the ones to predict, may lack turbo clock and power in the tables. Both are
    imputed by a log-linear fit on the training CPU models: base clock, cores, last-level cache, and the vendor.
    """

    weights: dict[str, list[float]] = field(default_factory=dict)
    """Weights of the fit by imputed column."""

    def fit(self, X: pd.DataFrame) -> Self:
        """Fit turbo clock and power to what every result states."""
        inputs = _imputation_inputs(X)
        self.weights = {}
        for name in _IMPUTED:
            values = log_column(X, name)
            known = np.isfinite(values) & np.isfinite(inputs).all(axis=1)
            if known.any():
                # One row per CPU model: the number of its results is no evidence of its turbo clock.
                rows = np.unique(np.column_stack([inputs[known], values[known]]).round(6), axis=0)
                A = rows[:, :-1]
                b = rows[:, -1]
                weights = np.linalg.solve(A.T @ A + _RIDGE * np.eye(A.shape[1]), A.T @ b)
                self.weights[name] = [float(weight) for weight in weights]
        return self

    def compute(self, X: pd.DataFrame) -> Quantities:
        """Return the quantities of rows."""
        inputs = _imputation_inputs(X)
        turbo = self._impute(X, "max_turbo_mhz", inputs)
        watts = self._impute(X, "tdp_w", inputs)
        watts_per_core = watts - log_column(X, "cores_per_chip_of_cpu_model")
        return {
            "cores": np.where(_uses_one_core(X), 0.0, log_column(X, "cores_enabled_total")),
            "chips": log_column(X, "chips"),
            "turbo": turbo,
            "watts_per_core": watts_per_core,
            "power_clock": log_power_clock(turbo, watts_per_core),
            "bandwidth": log_column(X, "mem_gbps_total"),
            "l3": np.log(np.maximum(column_values(X, "l3_mb_total"), 0.5)),
        }

    def _impute(self, X: pd.DataFrame, name: str, inputs: np.ndarray) -> np.ndarray:
        values = log_column(X, name)
        if name not in self.weights:
            return values
        imputed = (inputs * np.array(self.weights[name])).sum(axis=1)
        return np.where(np.isfinite(values), values, imputed)


def _uses_one_core(X: pd.DataFrame) -> np.ndarray:
    """Mark runs of one copy without parallelization: they use one core, (n,)."""
    if "metric" not in X or "parallel" not in X:
        return np.zeros(len(X), dtype=bool)
    return np.asarray((X["metric"].astype(object) == "speed").to_numpy() & (column_values(X, "parallel") == 0))


def column_values(X: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column as numbers, all NaN where the table does not have it, (n,)."""
    if name not in X:
        return np.full(len(X), np.nan)
    column = X[name]
    if column.dtype == np.float64:
        return np.asarray(column)
    return np.asarray(pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan))


def log_column(X: pd.DataFrame, name: str) -> np.ndarray:
    """Return the natural logarithm of a column, NaN where it is not positive, (n,)."""
    values = column_values(X, name)
    return np.asarray(np.log(np.where(values > 0, values, np.nan)))


def _imputation_inputs(X: pd.DataFrame) -> np.ndarray:
    l3 = np.log(np.maximum(np.nan_to_num(column_values(X, "l3_mb_per_chip"), nan=0.5), 0.5))
    vendor = X["cpu_vendor"].astype(object) if "cpu_vendor" in X else pd.Series(None, index=X.index)
    is_amd = (vendor == "AMD").to_numpy(dtype=float)
    base_clock = log_column(X, "base_mhz")
    cores = log_column(X, "cores_per_chip_of_cpu_model")
    return np.column_stack([np.ones(len(X)), base_clock, cores, l3, is_amd])
