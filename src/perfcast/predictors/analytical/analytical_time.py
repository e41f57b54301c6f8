"""`analytical_time`: the time of a run as a sum of compute and memory time, and the law's terms around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perfcast.predictors.analytical.analytical import LawBase, Part
from perfcast.predictors.analytical.terms import AnalyticalTerms
from perfcast.predictors.task_rows import POOLED, fitted_by_group, groups_of

_ROWS = 3000
"""Rows that a task's six parameters are fitted to: more would only cost time."""

_SPREAD = 0.05
"""Residual (logarithms) above which a row counts less."""


@dataclass(frozen=True)
class _Form:
    """One way to write the time of a run.

    `start`, `low` and `high` bound the parameters; the first `times` of them are logarithms of times, and move with the
    unit of the score.
    """

    name: str
    times: int
    start: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


_THROUGHPUT = _Form("throughput", 2, (7.0, 0.0, 0.1, 0.02, 0.02), (-30, -30, 0, -0.5, -0.5), (30, 30, 1, 0.5, 0.5))
_LATENCY = _Form("latency", 3, (6.0, 8.0, 0.0, 0.1, 0.02), (-30, -30, -30, 0, -0.5), (30, 30, 30, 1, 0.9))
_FORMS = {form.name: form for form in (_THROUGHPUT, _LATENCY)}


class AnalyticalTimePredictor(LawBase):
    """Time = compute / (IPC x clock) + memory / (bandwidth x cache^g) + overhead of sockets, times a law's terms.

    Two forms are fitted for every task, and the one closer to the training rows is kept. Throughput of n copies:
    t = a / (IPC f) + c n / (B L^g), score = n / t x chips^-h x n^-k. Latency of one run on n cores:
    t = a / (IPC f1) + b / (IPC f n) + c / (B L^g), score = 1 / t x chips^-h. IPC is what was announced of the core
    (`AnalyticalTerms.announced`), f the power-limited clock, f1 the turbo clock, B the memory bandwidth, L the last-level
    cache; a, b, c >= 0, 0 <= g <= 1. Because the time is a sum, a faster core stops helping where memory is the limit,
    and the reverse.
    """

    def __init__(
        self,
        *,
        strengths: Sequence[float] = (3e-4, 1e-3, 3e-3),
        default_strength: float = 1e-3,
        memories: Sequence[float] = (0.0, 3.0),
        default_memory: float = 3.0,
        announced: bool = True,
    ) -> None:
        self.strengths = strengths
        self.default_strength = default_strength
        self.memories = memories
        self.default_memory = default_memory
        self.announced = announced

    def _fit_structure(self, part: Part, terms: AnalyticalTerms) -> Any:
        quantities = terms.quantities.of(part.X)
        state: dict[str, Any] = {"fills": {name: _median(values) for name, values in quantities.items()}}
        inputs = _inputs(quantities, terms.announced(part.X), state["fills"])

        def fit(index: int, rows: np.ndarray) -> dict[str, Any]:
            return _fit_time({name: values[rows] for name, values in inputs.items()}, part.log_y[rows, index])

        state["laws"] = {
            target: fitted_by_group(groups_of(part.tasks, ~np.isnan(part.log_y[:, index])), partial(fit, index))
            for index, target in enumerate(self.targets_)
        }
        return state

    def _structure(self, X: pd.DataFrame, tasks: np.ndarray, terms: AnalyticalTerms, state: Any) -> np.ndarray:
        inputs = _inputs(terms.quantities.of(X), terms.announced(X), state["fills"])
        forecast = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            laws = state["laws"][self.targets_[index]]
            law = laws.get(task, laws[POOLED])
            part = {name: values[rows] for name, values in inputs.items()}
            forecast[rows, index] = _log_score(law["form"], np.array(law["parameters"]), part)
        return forecast


def _median(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else 0.0


def _inputs(quantities: dict[str, np.ndarray], ipc: np.ndarray, fills: dict[str, float]) -> dict[str, np.ndarray]:
    filled = {name: np.where(np.isfinite(values), values, fills[name]) for name, values in quantities.items()}
    return {**filled, "ipc": ipc}


def _log_times(form: str, p: np.ndarray, q: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of compute and memory time, (n,) each."""
    if form == "throughput":
        compute = p[0] - q["ipc"] - q["power_clock"]
        return compute, p[1] + q["cores"] - q["bandwidth"] - p[2] * (q["l3"] - 5)
    compute = np.logaddexp(p[0] - q["ipc"] - q["turbo"], p[1] - q["ipc"] - q["power_clock"] - q["cores"])
    return compute, p[2] - q["bandwidth"] - p[3] * (q["l3"] - 5)


def _log_score(form: str, p: np.ndarray, q: dict[str, np.ndarray]) -> np.ndarray:
    """Return the logarithm of the score under one form's parameters, (n,)."""
    time: np.ndarray = np.logaddexp(*_log_times(form, p, q))
    overhead = p[3] * q["chips"] + p[4] * (q["cores"] - 4) if form == "throughput" else p[4] * q["chips"]
    copies = q["cores"] if form == "throughput" else 0.0
    score: np.ndarray = copies - time - overhead
    return score


def _fit_time(inputs: dict[str, np.ndarray], log_y: np.ndarray) -> dict[str, Any]:
    """Fit both forms to one task's rows by robust least squares; return the better one's name and parameters."""
    from scipy.optimize import least_squares  # forecasts need none of it

    chosen = slice(None, None, max(1, len(log_y) // _ROWS))
    q, wanted = {name: values[chosen] for name, values in inputs.items()}, log_y[chosen]
    best: dict[str, Any] = {}
    for form in _FORMS.values():
        start = np.array(form.start)
        start[: form.times] += np.median(_log_score(form.name, start, q) - wanted)
        low, high = np.array(form.low), np.array(form.high)
        found = least_squares(
            lambda p, name=form.name: _log_score(name, p, q) - wanted,
            np.clip(start, low + 1e-3, high - 1e-3),
            bounds=(low, high),
            loss="soft_l1",
            f_scale=_SPREAD,
        )
        if not best or found.cost < best["cost"]:
            best = {"form": form.name, "parameters": [float(value) for value in found.x], "cost": float(found.cost)}
    return best
