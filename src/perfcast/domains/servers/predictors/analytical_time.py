"""Analytical model of the run time as a sum of compute and memory time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.servers.predictors.analytical import BaseAnalyticalPredictor, TrainingRows
from perfcast.domains.servers.predictors.server_quantities import Quantities
from perfcast.domains.servers.predictors.terms import AnalyticalTerms
from perfcast.predictors.task_rows import fitted_by_group, groups_of

_MAX_SAMPLES = 3000
"""About how many rows the parameters of a task are fitted to; more cost time without a gain."""

_START_PENALTY = 0.001
"""Penalty of a parameter per unit away from its start: a term without influence has no minimum."""
_PARAMETER_DECIMALS = 3
"""Decimals of the parameters: where the search ends depends on the last bits of sums, which the processor rounds."""
_SOFT_L1_SCALE = 0.05
"""Residual (natural logarithm) where the loss turns from squared to absolute."""


@dataclass(frozen=True)
class _TimeForm:
    """Formula of the run time.

    `start`, `low` and `high` bound the parameters. The first `n_times` of them are logarithms of times, which move with
    the unit of the score.
    """

    name: str
    n_times: int
    start: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


_THROUGHPUT = _TimeForm(
    "throughput",
    2,
    (7.0, 0.0, 0.1, 0.02, 0.02),
    (-30, -30, 0, -0.5, -0.5),
    (30, 30, 1, 0.5, 0.5),
)
_LATENCY = _TimeForm(
    "latency",
    3,
    (6.0, 8.0, 0.0, 0.1, 0.02),
    (-30, -30, -30, 0, -0.5),
    (30, 30, 30, 1, 0.9),
)


@dataclass(kw_only=True, eq=False, repr=False)
class AnalyticalTimePredictor(BaseAnalyticalPredictor):
    """Time = compute / (IPC x clock) + memory / (bandwidth x cache^g) + overhead of sockets, times the fitted terms.

    Two forms are fitted for every task, and the one closer to the training rows is used.

    Throughput of n copies: t = a / (IPC f) + c n / (B L^g), score = n / t x chips^-h x n^-k.
    Latency of one run on n cores: t = a / (IPC f1) + b / (IPC f n) + c / (B L^g), score = 1 / t x chips^-h.

    IPC is the announced gain of the core (`AnalyticalTerms.core_gains`), f the power-limited clock, f1 the turbo clock,
    B the memory bandwidth, L the last-level cache; a, b, c >= 0, 0 <= g <= 1. Because the time is a sum, a faster core
    gains nothing where memory is the limit, and the reverse.
    """

    alphas: Sequence[float] = (3e-4, 1e-3, 3e-3)
    default_alpha: float = 1e-3

    def _fit_structure(self, training: TrainingRows, terms: AnalyticalTerms) -> Any:
        quantities = terms.quantities.compute(training.X)
        medians = {name: _known_median(values) for name, values in quantities.items()}
        inputs = _fill_inputs(quantities, terms.core_gains(training.X), medians)

        def fit(index: int, rows: np.ndarray) -> dict[str, Any]:
            return _fit_time({name: values[rows] for name, values in inputs.items()}, training.log_y[rows, index])

        models = {
            target: fitted_by_group(groups_of(training.tasks, ~np.isnan(training.log_y[:, index])), partial(fit, index))
            for index, target in enumerate(self.targets_)
        }
        return {"medians": medians, "models": models}

    def _apply_structure(
        self, X: pd.DataFrame, tasks: np.ndarray, quantities: Quantities, terms: AnalyticalTerms, state: Any
    ) -> np.ndarray:
        inputs = _fill_inputs(quantities, terms.core_gains(X), state["medians"])

        def apply(model: dict[str, Any], rows: np.ndarray) -> np.ndarray:
            subset = {name: values[rows] for name, values in inputs.items()}
            return _log_score(model["form"], np.array(model["parameters"]), subset)

        return self._apply_models(tasks, state["models"], apply)


def _known_median(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else 0.0


def _fill_inputs(quantities: Quantities, ipc: np.ndarray, fills: dict[str, float]) -> dict[str, np.ndarray]:
    filled = {name: np.where(np.isfinite(values), values, fills[name]) for name, values in quantities.items()}
    return {**filled, "ipc": ipc}


def _log_score(form: str, p: np.ndarray, q: dict[str, np.ndarray]) -> np.ndarray:
    """Return the logarithm of the score under the parameters of one form, (n,)."""
    if form == "throughput":
        compute = p[0] - q["ipc"] - q["power_clock"]
        memory = p[1] + q["cores"] - q["bandwidth"] - p[2] * (q["l3"] - 5)
        overhead = p[3] * q["chips"] + p[4] * (q["cores"] - 4)
        copies = q["cores"]
    else:
        compute = np.logaddexp(p[0] - q["ipc"] - q["turbo"], p[1] - q["ipc"] - q["power_clock"] - q["cores"])
        memory = p[2] - q["bandwidth"] - p[3] * (q["l3"] - 5)
        overhead = p[4] * q["chips"]
        copies = np.zeros(1)
    return np.asarray(copies - np.logaddexp(compute, memory) - overhead)


def _fit_time(inputs: dict[str, np.ndarray], log_y: np.ndarray) -> dict[str, Any]:
    """Fit both forms to one task by robust least squares. Returns: name and parameters of the better one."""
    from scipy.optimize import least_squares  # a prediction does without this import

    step = slice(None, None, max(1, len(log_y) // _MAX_SAMPLES))
    q = {name: values[step] for name, values in inputs.items()}
    targets = log_y[step]
    best: dict[str, Any] = {}
    for form in (_THROUGHPUT, _LATENCY):
        start = np.array(form.start)
        start[: form.n_times] += np.median(_log_score(form.name, start, q) - targets)
        low = np.array(form.low)
        high = np.array(form.high)

        def residuals(p: np.ndarray, name: str = form.name, start: np.ndarray = start) -> np.ndarray:
            penalty = _START_PENALTY * np.sqrt(len(targets)) * (p - start)
            return np.concatenate([_log_score(name, p, q) - targets, penalty])

        solution = least_squares(
            residuals,
            np.clip(start, low + 1e-3, high - 1e-3),
            jac="3-point",
            bounds=(low, high),
            loss="soft_l1",
            f_scale=_SOFT_L1_SCALE,
        )
        if not best or solution.cost < best["cost"]:
            parameters = solution.x.round(_PARAMETER_DECIMALS).tolist()
            best = {
                "form": form.name,
                "parameters": parameters,
                "cost": float(solution.cost),
            }
    return best
