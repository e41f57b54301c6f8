"""The physical quantities of a server that the law is written in, with clocks and power filled in where unknown."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.server_physics import log_power_clock

_FILLED = ("max_turbo_mhz", "tdp_w")
_SHRINK = 1e-3

COLUMNS_READ = (
    "cores_enabled_total",
    "chips",
    "base_mhz",
    "max_turbo_mhz",
    "tdp_w",
    "cores_per_chip_part",
    "l3_mb_per_chip",
    "l3_mb_total",
    "mem_gbps_total",
    "power_clock_mhz",
    "flops_per_cycle",
)
"""Columns that the quantities, or the features they stand for, are made of."""


class Quantities:
    """Natural logarithms of cores, chips, turbo, power-limited clock, W per core, GB/s and last-level cache.

    The catalog knows neither turbo nor power of the newest parts, which are the ones to be forecast. Both are then
    taken from a log-linear fit on the training parts: base clock, cores, last-level cache, and the maker.
    """

    def __init__(self) -> None:
        self.fills: dict[str, list[float]] = {}

    def fit(self, X: pd.DataFrame) -> Self:
        """Learn how turbo and power go with what every result states."""
        inputs = _part_inputs(X)
        self.fills = {}
        for name in _FILLED:
            values = _log(X, name)
            known = np.isfinite(values) & np.isfinite(inputs).all(axis=1)
            if known.any():
                # one row per part: how often a part was measured says nothing about its turbo
                rows = np.unique(np.column_stack([inputs[known], values[known]]).round(6), axis=0)
                A, b = rows[:, :-1], rows[:, -1]
                weights = np.linalg.solve(A.T @ A + _SHRINK * np.eye(A.shape[1]), A.T @ b)
                self.fills[name] = [float(weight) for weight in weights]
        return self

    def of(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return the quantities, (n,) each, NaN where unknown."""
        turbo, watts = self._filled(X, "max_turbo_mhz"), self._filled(X, "tdp_w")
        per_core = watts - _log(X, "cores_per_chip_part")
        return {
            "cores": np.where(_on_one_core(X), 0.0, _log(X, "cores_enabled_total")),
            "chips": _log(X, "chips"),
            "turbo": turbo,
            "watts_per_core": per_core,
            "power_clock": log_power_clock(turbo, per_core),
            "bandwidth": _log(X, "mem_gbps_total"),
            "l3": np.log(np.maximum(column_values(X, "l3_mb_total"), 0.5)),
        }

    def to_state(self) -> dict[str, Any]:
        """Return what was learned as values that JSON can hold."""
        return {"fills": self.fills}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state()`."""
        quantities = cls()
        quantities.fills = state["fills"]
        return quantities

    def _filled(self, X: pd.DataFrame, name: str) -> np.ndarray:
        values = _log(X, name)
        if name not in self.fills:
            return values
        guessed = (_part_inputs(X) * np.array(self.fills[name])).sum(axis=1)
        return np.where(np.isfinite(values), values, guessed)


def _on_one_core(X: pd.DataFrame) -> np.ndarray:
    """Mark runs of one copy that were not made parallel: however many cores there are, they use one, (n,)."""
    if "metric" not in X or "parallel" not in X:
        return np.zeros(len(X), dtype=bool)
    one: np.ndarray = (X["metric"].astype(object) == "speed").to_numpy() & (column_values(X, "parallel") == 0)
    return one


def column_values(X: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column as numbers, all NaN where the table does not have it, (n,)."""
    if name not in X:
        return np.full(len(X), np.nan)
    values: np.ndarray = pd.to_numeric(X[name], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return values


def _log(X: pd.DataFrame, name: str) -> np.ndarray:
    values = column_values(X, name)
    logs: np.ndarray = np.log(np.where(values > 0, values, np.nan))
    return logs


def _part_inputs(X: pd.DataFrame) -> np.ndarray:
    l3 = np.log(np.maximum(np.nan_to_num(column_values(X, "l3_mb_per_chip"), nan=0.5), 0.5))
    maker = X["cpu_vendor"].astype(object) if "cpu_vendor" in X else pd.Series(None, index=X.index)
    amd = (maker == "AMD").to_numpy(dtype=float)
    return np.column_stack([np.ones(len(X)), _log(X, "base_mhz"), _log(X, "cores_per_chip_part"), l3, amd])
