"""Linear regression of log targets, one per task, with a penalty chosen on validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import choice_split, fitted_by_group, groups_of, measured_rows, task_labels
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

Penalty = dict[str, float]
"""The penalty of a regression under the name `alpha`."""


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(Predictor):
    """Weighted sum of encoded columns on log targets, with separate weights for every task.

    Columns are encoded by `LinearEncoder`: logarithms where positive, standardized. Least squares have a penalty on
    squared weights, in closed form: every penalty shares one matrix product. The penalty is that with the smallest mean
    absolute log error on the task's validation rows, of equal ones the strongest. Without validation rows it is
    `default_alpha`. The weights are then fitted to all training rows. Penalties are per training row. A task that
    training did not have gets the weights of all rows.

    Source: Hoerl and Kennard, 1970, Technometrics 12(1).
    """

    alphas: Sequence[float] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    default_alpha: float = 1e-3
    min_count: int = 20
    clip: float = 1.0

    encoder_: LinearEncoder = field(init=False)
    penalties_: dict[str, dict[str, Penalty]] = field(init=False)
    """Penalty by target and task."""
    weights_: dict[str, dict[str, list[float]]] = field(init=False)
    """Constant and weights by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.encoder_ = LinearEncoder(min_count=self.min_count, clip=self.clip).fit(X, feature_columns(self.columns_))
        encoded = self.encoder_.transform(X)
        tasks = task_labels(X, self.columns_)
        self.penalties_ = {}
        self.weights_ = {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            fit = partial(self._fit_group, encoded, log_y[:, index], validation)
            fitted = fitted_by_group(groups_of(tasks, rows), fit)
            self.penalties_[target] = {name: {"alpha": alpha} for name, (alpha, _) in fitted.items()}
            self.weights_[target] = {name: weights for name, (_, weights) in fitted.items()}

    def _fit_group(
        self, encoded: np.ndarray, log_y: np.ndarray, validation: np.ndarray, rows: np.ndarray
    ) -> tuple[float, list[float]]:
        """Return the chosen penalty and the weights of one task, the constant first."""
        if not encoded.shape[1]:
            return self.default_alpha, [float(log_y[rows].mean())]
        split = choice_split(rows, validation)
        alpha = self.default_alpha if split is None else self._choose(encoded, log_y, *split)
        return alpha, _Moments.of(encoded[rows], log_y[rows]).solve(alpha).tolist()

    def _choose(self, encoded: np.ndarray, log_y: np.ndarray, fitting: np.ndarray, choosing: np.ndarray) -> float:
        """Return the penalty for weights that are fitted to the first rows, by their error on the second."""
        moments = _Moments.of(encoded[fitting], log_y[fitting])
        errors = {
            alpha: float(np.abs(apply_weights(encoded[choosing], moments.solve(alpha)) - log_y[choosing]).mean())
            for alpha in sorted(self.alphas, reverse=True)
        }
        return float(min(errors, key=errors.__getitem__))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded = self.encoder_.transform(X)
        tasks = task_labels(X, self.columns_)
        return self._apply_models(tasks, self.weights_, lambda each, rows: apply_weights(encoded[rows], np.array(each)))

    def _save(self, folder: Path) -> None:
        state = {"encoder": self.encoder_.to_state(), "penalties": self.penalties_, "weights": self.weights_}
        write_json(folder / "linear.json", state)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "linear.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        self.penalties_ = state["penalties"]
        self.weights_ = state["weights"]


@dataclass(frozen=True)
class _Moments:
    """Means and mean products of rows, from which a ridge regression of any penalty follows without the rows.

    Shapes: center (p,), gram (p, p), cross (p,).
    """

    center: np.ndarray
    constant: float
    gram: np.ndarray
    cross: np.ndarray

    @classmethod
    def of(cls, encoded: np.ndarray, log_y: np.ndarray) -> Self:
        center = encoded.mean(axis=0)
        constant = float(log_y.mean())
        centered = encoded - center
        return cls(center, constant, centered.T @ centered / len(encoded), (log_y - constant) @ centered / len(encoded))

    def solve(self, alpha: float) -> np.ndarray:
        """Return the constant and the weights, (1 + p,)."""
        weights = np.linalg.solve(self.gram + alpha * np.eye(len(self.gram)), self.cross)
        return np.concatenate([[self.constant - self.center @ weights], weights])


def apply_weights(encoded: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of rows, the constant being the first weight. Shapes: (n, p), (1 + p,) -> (n,)."""
    # A row's sum in a fixed order: a matrix product may round differently for one row than for many.
    return np.asarray(weights[0] + (encoded * weights[1:]).sum(axis=1))
