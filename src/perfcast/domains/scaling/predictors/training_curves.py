"""Final results of runs under way: the last result, and the gain that smaller runs made from there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV

from perfcast.domains.scaling.features.training_curve import LEVEL, NOW, RELATIVE_SLOPE
from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, fitted_by_group, groups_of, measured_rows, task_labels, task_medians

_EXPLAINS = (RELATIVE_SLOPE, "log_params", "log_tokens_per_param")
_ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)
_MIN_ROWS = 6
"""Training rows of a task below which its gain is the mean gain."""
_SMALLEST = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class LastValuePredictor(Predictor):
    """y = last result of the known part. A row without one gets the training median of its task."""

    reads_tags_only: ClassVar[bool] = True

    medians_: dict[str, dict[str, float]] = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.medians_ = task_medians(task_labels(X, self.columns_), log_y, self.targets_)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        last = np.log(np.maximum(self._read(X, (NOW,))[:, 0], _SMALLEST))
        known, tasks = np.isfinite(last), task_labels(X, self.columns_)
        return self._apply_models(tasks, self.medians_, lambda each, rows: np.where(known[rows], last[rows], each))

    def _read(self, X: pd.DataFrame, names: tuple[str, ...]) -> np.ndarray:
        """Return columns by name, NaN for one that the table lacks. Shapes: (n, names)."""
        declared = {column.name: column for column in self.columns_}
        present = [name for name in names if name in declared]
        matrix = number_matrix(X, [declared[name] for name in present])
        values = np.full((len(X), len(names)), np.nan)
        for place, name in enumerate(present):
            values[:, names.index(name)] = matrix[:, place]
        return values


@dataclass(kw_only=True, eq=False, repr=False)
class RemainingGainPredictor(LastValuePredictor):
    """ln y = ln level + c + b · (slope / level, ln parameters, ln tokens per parameter), by ridge regression per task.

    The level is that of the line through the last half of the known part, at its end. A schedule lowers the learning
    rate to the end, so every run gains more there than its slope tells: c is that gain, b how it depends on the run.
    The penalty is chosen by generalized cross-validation on the training rows. A task with few rows has the mean gain.
    Source: Golub, Heath and Wahba, 1979, Generalized cross-validation, Technometrics 21(2).
    """

    weights_: dict[str, dict[str, list[float]]] = field(init=False)
    """Constant, then a mean, a scale and a weight per column of `_EXPLAINS`, by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        super()._fit(X, log_y, validation)
        gains, inputs = log_y - self._level(X)[:, None], self._explaining(X)
        tasks, self.weights_ = task_labels(X, self.columns_), {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            gain = gains[:, index]

            def fit(group: np.ndarray, gain: np.ndarray = gain) -> list[float]:
                usable = group & np.isfinite(gain)
                return _fit_gain(inputs[usable], gain[usable])

            self.weights_[target] = fitted_by_group(groups_of(tasks, rows), fit)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        level, inputs, logs = self._level(X), self._explaining(X), super()._predict(X)
        for index, task, rows in self._outputs(task_labels(X, self.columns_)):
            weights = self.weights_[self.targets_[index]]
            known = rows[np.isfinite(level[rows])]
            logs[known, index] = level[known] + _apply_gain(weights.get(task, weights[POOLED]), inputs[known])
        return logs

    def _level(self, X: pd.DataFrame) -> np.ndarray:
        level = self._read(X, (LEVEL,))[:, 0]
        return np.log(np.where(level > 0, np.maximum(level, _SMALLEST), np.nan))

    def _explaining(self, X: pd.DataFrame) -> np.ndarray:
        return self._read(X, _EXPLAINS)


def _fit_gain(inputs: np.ndarray, gain: np.ndarray) -> list[float]:
    """Return the weights of `RemainingGainPredictor` for the rows of one task; unknown inputs count as their mean."""
    size = inputs.shape[1]
    plain = [float(gain.mean()) if len(gain) else 0.0, *[0.0] * size, *[1.0] * size, *[0.0] * size]
    if len(gain) < _MIN_ROWS:
        return plain
    known = np.isfinite(inputs)
    center = np.where(known, inputs, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, inputs, center)
    scale = filled.std(axis=0)
    scale[scale < _SMALLEST] = 1.0
    model = RidgeCV(alphas=_ALPHAS).fit((filled - center) / scale, gain)
    return [float(model.intercept_), *center.tolist(), *scale.tolist(), *np.asarray(model.coef_).tolist()]


def _apply_gain(weights: list[float], inputs: np.ndarray) -> np.ndarray:
    center, scale, slopes = np.array(weights[1:]).reshape(3, -1)
    return np.asarray(weights[0] + np.nan_to_num((inputs - center) / scale) @ slopes)
