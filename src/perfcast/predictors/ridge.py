"""Ridge regression of log targets, one per task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.encoding.dense import LinearEncoder, feature_columns
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import choice_split, measured_rows, task_labels
from perfcast.predictors.base import Predictor

_POOLED = "\x1e"
"""The model of all rows, for a task that training never saw; a control character is no task's name."""


class RidgePredictor(Predictor):
    """Least squares of log targets with a penalty `alpha` on squared weights, separately for every task.

    Features as `LinearEncoder` gives them, logarithms where positive. The penalty is per training row. It is the one
    of `alphas` with the smallest mean absolute log error on the task's `valid` rows, and `default_alpha` where there
    are none; the weights are then fitted to all training rows. A task never seen gets the model of all rows.
    Source: Hoerl and Kennard, 1970, Technometrics 12(1).
    """

    encoder_: LinearEncoder
    alphas_: dict[str, dict[str, float]]
    weights_: dict[str, dict[str, list[float]]]

    def __init__(
        self,
        *,
        alphas: Sequence[float] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        default_alpha: float = 1e-3,
        min_count: int = 20,
        clip: float = 1.0,
    ) -> None:
        self.alphas = alphas
        self.default_alpha = default_alpha
        self.min_count = min_count
        self.clip = clip

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        self.encoder_ = LinearEncoder(min_count=self.min_count, clip=self.clip).fit(X, feature_columns(self.columns_))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        self.alphas_, self.weights_ = {}, {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            groups = {str(task): rows & (tasks == task) for task in np.unique(tasks[rows].astype(str))}
            groups[_POOLED] = rows
            alphas = {name: self._choose(encoded, log_y[:, index], group, valid) for name, group in groups.items()}
            self.alphas_[target] = alphas
            self.weights_[target] = {
                name: _solve(encoded[group], log_y[group, index], [alphas[name]])[0].tolist()
                for name, group in groups.items()
            }

    def _choose(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, valid: np.ndarray) -> float:
        parts = choice_split(rows, valid)
        if parts is None:
            return self.default_alpha
        fitting, choosing = parts
        candidates = sorted(self.alphas, reverse=True)  # the strongest penalty wins a tie
        weights = _solve(encoded[fitting], log_y[fitting], candidates)
        errors = [np.abs(_apply(encoded[choosing], one) - log_y[choosing]).mean() for one in weights]
        return float(candidates[int(np.argmin(errors))])

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        forecast = np.empty((len(X), len(self.targets_)))
        for index, target in enumerate(self.targets_):
            models = self.weights_[target]
            for task in np.unique(tasks.astype(str)):
                rows = tasks == task
                forecast[rows, index] = _apply(encoded[rows], np.array(models.get(str(task), models[_POOLED])))
        return forecast

    def _save(self, folder: Path) -> None:
        state = {"encoder": self.encoder_.to_state(), "alphas": self.alphas_, "weights": self.weights_}
        write_json(folder / "ridge.json", state)

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "ridge.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        self.alphas_, self.weights_ = state["alphas"], state["weights"]


def _solve(encoded: np.ndarray, log_y: np.ndarray, alphas: Sequence[float]) -> np.ndarray:
    """Return the ridge solutions for several penalties from one eigendecomposition.

    Shapes: encoded (n, p), log_y (n,) -> (penalties, 1 + p), the constant first.
    """
    centre, constant = encoded.mean(axis=0), log_y.mean()
    centred = encoded - centre
    values, vectors = np.linalg.eigh(centred.T @ centred / len(encoded))
    projected = vectors.T @ (centred.T @ (log_y - constant) / len(encoded))
    # Rounding makes eigenvalues of a rank-deficient matrix slightly negative.
    weights = [vectors @ (projected / (np.maximum(values, 0.0) + alpha)) for alpha in alphas]
    return np.array([np.concatenate([[constant - centre @ one], one]) for one in weights])


def _apply(encoded: np.ndarray, weights: np.ndarray) -> np.ndarray:
    # A row's sum in a fixed order: a matrix product may round differently for one row than for many.
    forecast: np.ndarray = weights[0] + (encoded * weights[1:]).sum(axis=1)
    return forecast
