"""Roofline model: time as a sum of physical amounts, each at a fitted rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import numbers
from perfcast.features.feature_math import round_digits
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, fitted_by_group, groups_of, measured_rows, task_labels
from perfcast.schema.table import Column, Kind, Role, Tag, select

_MIN_TIME_SHARE = 0.1
"""No predicted time is below this share of the shortest training time."""
_N_ITERATIONS = 30
_RATE_DIGITS = 6
"""Significant digits of the coefficients: the last bits of what a search finds are those of the processor."""
_MIN_RESIDUAL = 0.01
"""Relative residuals below this count by their squares, larger ones by their absolute value."""


@dataclass(kw_only=True, eq=False, repr=False)
class RooflinePredictor(Predictor):
    """time = c_0 + sum over COST columns of c_j x_j with c_j >= 0, for every target and task.

    A coefficient is the inverse of the rate that the machine sustains (operations, bytes, waves per second). The rates
    are fitted and the form is physics, so the model extrapolates in size. Where a column is tagged WORK, the target is
    a rate and its time is work / rate; otherwise the target is itself the sum. The fit minimizes absolute relative
    errors by reweighted least squares, so single disturbed rows and the longest times have little influence. A missing
    amount is the training median. A task that training did not have gets the model of all rows.

    Source: Williams, Waterman and Patterson, 2009, CACM 52(4), with phases that do not overlap, as in Stengel et al.,
    2015, ICS (ECM model); non-negative least squares by Lawson and Hanson, 1974.
    """

    reads_tags_only: ClassVar[bool] = True

    medians_: dict[str, float] = field(init=False)
    coefficients_: dict[str, dict[str, list[float]]] = field(init=False)
    """By target and task: c_0, then one coefficient per COST column in the order of the columns."""
    min_times_: dict[str, float] = field(init=False)
    """Shortest predicted time by target."""
    default_work_: float = field(init=False)
    """Training median of the WORK column, for a row where it is missing; 1 where targets are no rates."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.medians_ = {column.name: _known_median(numbers(X, column)) for column in self._cost_columns()}
        work_columns = self._work_columns()
        self.default_work_ = (_known_median(numbers(X, work_columns[0])) if work_columns else 0.0) or 1.0
        design = self._design(X)
        tasks = task_labels(X, self.columns_)
        work = self._log_work(X)
        self.coefficients_ = {}
        self.min_times_ = {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            time = np.exp(log_y[:, index] if work is None else work - log_y[:, index])
            self.coefficients_[target] = fitted_by_group(groups_of(tasks, rows), partial(fit_rates, design, time))
            self.min_times_[target] = _MIN_TIME_SHARE * float(time[rows].min())

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        design = self._design(X)
        tasks = task_labels(X, self.columns_)
        work = self._log_work(X)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            target = self.targets_[index]
            by_task = self.coefficients_[target]
            coefficients = np.array(by_task.get(task, by_task[POOLED]))
            # A row's sum in a fixed order: a matrix product may round differently for one row than for many.
            time = np.log(np.maximum((design[rows] * coefficients).sum(axis=1), self.min_times_[target]))
            logs[rows, index] = time if work is None else work[rows] - time
        return logs

    def _cost_columns(self) -> list[Column]:
        tagged = select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.COST)
        return [column for column in tagged if column.role is not Role.TARGET]

    def _work_columns(self) -> list[Column]:
        return list(select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.WORK))

    def _design(self, X: pd.DataFrame) -> np.ndarray:
        """Return the amounts of every row after a column of ones. Shapes: (n, 1 + COST columns)."""
        design = np.ones((len(X), 1 + len(self.medians_)))
        for position, column in enumerate(self._cost_columns(), 1):
            values = numbers(X, column)
            design[:, position] = np.where(values >= 0, values, self.medians_[column.name])
        return design

    def _log_work(self, X: pd.DataFrame) -> np.ndarray | None:
        """Return the logarithm of the work behind a rate, (n,); None where targets are no rates."""
        work_columns = self._work_columns()
        if not work_columns:
            return None
        values = numbers(X, work_columns[0])
        return np.log(np.where(values > 0, values, self.default_work_))


def _known_median(values: np.ndarray) -> float:
    known = values[values >= 0]
    return float(np.median(known)) if len(known) else 0.0


def fit_rates(design: np.ndarray, time: np.ndarray, rows: np.ndarray) -> list[float]:
    """Return the coefficients c >= 0 of time = sum of c_j x_j that suit some rows best.

    Reweighted least squares minimize absolute relative errors, so single disturbed rows and the longest times have
    little influence.

    Args:
        design: Amounts.
        time: Measured times, positive.
        rows: Rows to fit on, at least one.

    Shapes:
        design (n, p), time (n,), rows (n,) bool -> (p,).

    Source: non-negative least squares by Lawson and Hanson, 1974, Solving Least Squares Problems.
    """
    from scipy.optimize import nnls  # a prediction does without this import

    relative = design[rows] / time[rows, None]
    # Each amount is scaled to a mean of 1; an amount that is always 0 stays without influence.
    scale = relative.mean(axis=0)
    scale[scale == 0] = 1.0
    relative = relative / scale
    weight = np.ones(len(relative))
    for _ in range(_N_ITERATIONS):
        solution, _ = nnls(relative * np.sqrt(weight)[:, None], np.sqrt(weight))
        weight = 1 / np.maximum(np.abs(relative @ solution - 1), _MIN_RESIDUAL)
    return [float(rate) for rate in round_digits(solution / scale, _RATE_DIGITS)]
