"""Roofline model with a factor per category: software and products that reach different shares of the rates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import labels
from perfcast.predictors.roofline import RooflinePredictor
from perfcast.predictors.task_rows import POOLED, groups_of, measured_rows, task_labels
from perfcast.schema.table import Column, Kind, Role, Tag, select

_MIN_SHARE = 0.01
"""Share of the time that a term has at least when the fit starts, so that a term of no influence can grow."""
_START_PENALTY = 0.003
"""Penalty of the logarithm of a rate per unit away from its start: a term without influence has no minimum."""
_LOG_DECIMALS = 4
"""Decimals of fitted logarithms: where the search ends depends on the last bits of sums, which the processor rounds."""

Factors = dict[str, dict[str, float]]
"""Logarithm of the factor by column and value."""


@dataclass(kw_only=True, eq=False, repr=False)
class RooflineFactorsPredictor(RooflinePredictor):
    """log time = log(c_0 + sum of c_j x_j) + sum of the factors of the row's categories, for every target and task.

    The categories are the categorical features tagged SLICE. The fit minimizes a robust loss of logarithmic errors,
    from the rates of the roofline model; the logarithms of factors are shrunk to 0. An unknown category has the factor
    1.

    Source: as RooflinePredictor; soft L1 loss and trust-region reflective algorithm of scipy.optimize.least_squares
    (Branch, Coleman and Li, 1999, SIAM Journal on Scientific Computing 21).
    """

    shrinkage: float = 0.015
    loss_scale: float = 0.2
    max_evaluations: int = 60

    factors_: dict[str, dict[str, Factors]] = field(init=False)
    """By target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        super()._fit(X, log_y, validation)
        design = self._design(X)
        tasks = task_labels(X, self.columns_)
        work = self._log_work(X)
        self.factors_ = {}
        for index, (target, rows) in enumerate(
            zip(
                self.targets_,
                measured_rows(log_y, self.targets_),
                strict=True,
            )
        ):
            time = log_y[:, index] if work is None else work - log_y[:, index]
            self.factors_[target] = {}
            groups = groups_of(tasks, rows)
            for task, mask in groups.items():
                start = np.array(self.coefficients_[target].get(task, self.coefficients_[target][POOLED]))
                rates, factors = self._refine(design[mask], time[mask], start, X[mask])
                self.coefficients_[target][task] = rates
                self.factors_[target][task] = factors

    def _refine(
        self, design: np.ndarray, log_time: np.ndarray, start: np.ndarray, X: pd.DataFrame
    ) -> tuple[list[float], Factors]:
        """Return the rates and the factors of some rows. Shapes: design (n, p), log_time (n,), start (p,)."""
        from scipy.optimize import least_squares  # a prediction does without this import

        scale = (design / np.exp(log_time)[:, None]).mean(axis=0)
        used = scale > 0
        first = np.log(np.maximum(start[used], _MIN_SHARE / scale[used]))
        columns = [(column.name, labels(X, column)) for column in self._category_columns()]
        named = []
        for name, texts in columns:
            values = set(map(str, texts[~pd.isna(texts)]))
            named += [(name, value) for value in sorted(values)]
        one_hot = np.zeros((len(design), len(named)))
        for position, (name, value) in enumerate(named):
            one_hot[:, position] = dict(columns)[name] == value
        terms = design[:, used]
        size = np.sqrt(len(design))

        def residuals(parameters: np.ndarray) -> np.ndarray:
            logs = parameters[: len(first)]
            factors = parameters[len(first) :]
            errors = np.log(terms @ np.exp(logs)) + one_hot @ factors - log_time
            return np.concatenate(
                [
                    errors,
                    self.shrinkage * size * factors,
                    _START_PENALTY * size * (logs - first),
                ]
            )

        begin = np.concatenate([first, np.zeros(len(named))])
        solution = least_squares(
            residuals,
            begin,
            loss="soft_l1",
            f_scale=self.loss_scale,
            max_nfev=self.max_evaluations,
        ).x.round(_LOG_DECIMALS)
        rates = np.zeros(design.shape[1])
        rates[used] = np.exp(solution[: len(first)])
        fitted: Factors = {}
        for (name, value), factor in zip(named, solution[len(first) :], strict=True):
            fitted.setdefault(name, {})[value] = float(factor)
        return [float(rate) for rate in rates], fitted

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = super()._predict(X)
        tasks = task_labels(X, self.columns_)
        sign = -1.0 if self._work_columns() else 1.0
        for index, task, rows in self._outputs(tasks):
            by_task = self.factors_[self.targets_[index]]
            factors = by_task.get(task, by_task[POOLED])
            for column in self._category_columns():
                texts = pd.Series(labels(X.iloc[rows], column))
                of_row = texts.map(factors.get(column.name, {})).astype("float64")
                logs[rows, index] += sign * of_row.fillna(0.0).to_numpy()
        return logs

    def _category_columns(self) -> list[Column]:
        return list(select(self.columns_, role=Role.FEATURE, kind=Kind.CATEGORICAL, tag=Tag.SLICE))
