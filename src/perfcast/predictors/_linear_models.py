"""What linear regressions share: one per task, a penalty chosen on the rows set aside, the path of penalties."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

from perfcast.encoding.dense import LinearEncoder, feature_columns
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import POOLED, choice_split, fitted_by_group, groups_of, measured_rows, task_labels
from perfcast.predictors.base import Predictor

_TOLERANCE = 1e-6
"""The descent ends within this share of the targets' squares of the best solution: an error of about 0.1 % of their
spread, well below the noise of a measurement."""


class LinearPredictor(Predictor):
    """A weighted sum of encoded columns on log targets, with weights of its own for every task.

    Features as `LinearEncoder` gives them, logarithms where positive. The penalty is per training row. It is the one
    of `alphas` (and of the subclass's `l1_ratios`) with the smallest mean absolute log error on the task's `valid`
    rows, and `default_alpha` where there are none; the weights are then fitted to all training rows. A task never seen
    gets the model of all rows.

    A subclass implements `_path`.
    """

    alphas: Sequence[float]
    default_alpha: float
    min_count: int
    clip: float
    l1_ratios: Sequence[float]
    """Share of the penalty on absolute weights, the rest being on squared ones; without a choice the first is used."""

    _file: ClassVar[str]

    encoder_: LinearEncoder
    alphas_: dict[str, dict[str, float]]
    l1_ratios_: dict[str, dict[str, float]]
    weights_: dict[str, dict[str, list[float]]]

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        self.encoder_ = LinearEncoder(min_count=self.min_count, clip=self.clip).fit(X, feature_columns(self.columns_))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        self.alphas_, self.l1_ratios_, self.weights_ = {}, {}, {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            solve = partial(self._solution, encoded, log_y[:, index], valid)
            found = fitted_by_group(groups_of(tasks, rows), solve)
            self.alphas_[target] = {name: alpha for name, (alpha, _, _) in found.items()}
            self.l1_ratios_[target] = {name: ratio for name, (_, ratio, _) in found.items()}
            self.weights_[target] = {name: weights for name, (_, _, weights) in found.items()}

    def _solution(
        self, encoded: np.ndarray, log_y: np.ndarray, valid: np.ndarray, rows: np.ndarray
    ) -> tuple[float, float, list[float]]:
        """Return the chosen penalty, its share on absolute weights, and the weights."""
        alpha, ratio = self._choose(encoded, log_y, rows, valid)
        path = self._path(encoded[rows], log_y[rows], self._down_to(alpha), ratio)
        return alpha, ratio, path[-1].tolist()

    def _choose(
        self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, valid: np.ndarray
    ) -> tuple[float, float]:
        parts = choice_split(rows, valid)
        if parts is None:
            return self.default_alpha, self.l1_ratios[0]
        fitting, choosing = parts
        alphas = sorted(self.alphas, reverse=True)  # the strongest penalty wins a tie
        errors = [
            [
                np.abs(apply_weights(encoded[choosing], one) - log_y[choosing]).mean()
                for one in self._path(encoded[fitting], log_y[fitting], alphas, ratio)
            ]
            for ratio in self.l1_ratios
        ]
        ratio, alpha = divmod(int(np.argmin(errors)), len(alphas))
        return float(alphas[alpha]), float(self.l1_ratios[ratio])

    def _down_to(self, alpha: float) -> list[float]:
        """Return the penalties to pass through before `alpha`, strongest first, and `alpha`."""
        return [alpha]

    @abstractmethod
    def _path(self, encoded: np.ndarray, log_y: np.ndarray, alphas: Sequence[float], l1_ratio: float) -> np.ndarray:
        """Return the solutions for several penalties, given strongest first.

        Shapes: encoded (n, p), log_y (n,) -> (penalties, 1 + p), the constant first.
        """

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        forecast = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._questions(tasks):
            models = self.weights_[self.targets_[index]]
            forecast[rows, index] = apply_weights(encoded[rows], np.array(models.get(task, models[POOLED])))
        return forecast

    def _save(self, folder: Path) -> None:
        write_json(folder / self._file, self._state())

    def _state(self) -> dict[str, Any]:
        return {"encoder": self.encoder_.to_state(), "alphas": self.alphas_, "weights": self.weights_}

    def _load(self, folder: Path) -> None:
        state = read_json(folder / self._file)
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        self.alphas_, self.weights_ = state["alphas"], state["weights"]


class SparsePredictor(LinearPredictor):
    """A linear regression whose penalty on absolute weights sets many of them to exactly 0.

    Solved by coordinate descent on the columns' inner products, from the strongest penalty to the weakest, every
    solution starting at the one before. Categories are 0 or 1 and not standardised, so a rare one is held back more.
    """

    sweeps: int

    def _down_to(self, alpha: float) -> list[float]:
        return [*sorted((other for other in self.alphas if other > alpha), reverse=True), alpha]

    def _path(self, encoded: np.ndarray, log_y: np.ndarray, alphas: Sequence[float], l1_ratio: float) -> np.ndarray:
        centre, constant = encoded.mean(axis=0), log_y.mean()
        weights = np.zeros((encoded.shape[1], len(alphas)))
        if encoded.shape[1]:
            centred, aims = np.asfortranarray(encoded - centre), log_y - constant
            with warnings.catch_warnings():
                # Columns that repeat each other have many nearly equal solutions; any of them forecasts the same.
                warnings.simplefilter("ignore", ConvergenceWarning)
                _, weights, _ = enet_path(
                    centred,
                    aims,
                    l1_ratio=l1_ratio,
                    alphas=list(alphas),
                    precompute=centred.T @ centred,
                    Xy=centred.T @ aims,
                    max_iter=self.sweeps,
                    tol=_TOLERANCE,
                )
        return np.column_stack([constant - centre @ weights, weights.T])


def apply_weights(encoded: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of rows, the constant being the first weight. Shapes: (n, p), (1 + p,) -> (n,)."""
    # A row's sum in a fixed order: a matrix product may round differently for one row than for many.
    forecast: np.ndarray = weights[0] + (encoded * weights[1:]).sum(axis=1)
    return forecast
