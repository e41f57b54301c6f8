"""Support vector regression of log targets with a radial kernel, one model per task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import choice_split, groups_of, measured_rows, task_labels
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_models, read_state, write_models

_BLOCK = 1024
"""Rows of one block of a prediction, which bounds the memory for the kernel."""


@dataclass(frozen=True)
class SvrModel:
    """Fitted support vector regression: constant + sum over support vectors v of coefficient exp(-gamma |x - v|^2).

    Shapes: vectors (m, columns), coefficients (m,), in natural logarithms of the target.
    """

    vectors: np.ndarray
    coefficients: np.ndarray
    constant: float
    gamma: float

    def predict(self, encoded: np.ndarray) -> np.ndarray:
        """Return log targets. Shapes: (n, columns) -> (n,)."""
        from scipy.spatial.distance import cdist

        logs = np.empty(len(encoded))
        for start in range(0, len(encoded), _BLOCK):
            # Every distance by itself: a matrix product may round differently for one row than for many.
            squared = cdist(encoded[start : start + _BLOCK], self.vectors, "sqeuclidean")
            weighted = np.exp(-self.gamma * squared) * self.coefficients
            logs[start : start + _BLOCK] = self.constant + weighted.sum(axis=1)
        return logs


@dataclass(kw_only=True, eq=False, repr=False)
class SvmPredictor(Predictor):
    """Epsilon-insensitive support vector regression with a radial kernel, separately for every task.

    Columns are encoded by `LinearEncoder`: standardized numbers, categories 0 or 1. A model learns from at most
    `max_samples` rows, drawn at random, because a fit takes more than linear time in the rows. `epsilon` is the
    deviation without a cost and `C` has the candidates for the cost, both for the standardized log target. `gamma` has
    the candidates for the kernel's coefficient, in units of one over the sum of the columns' variances. `GridSearchCV`
    chooses the pair with the smallest mean absolute log error on the task's validation rows. Without validation rows
    it is `default_C` and `default_gamma`. The model is then fitted to a draw from all training rows. A task that
    training did not have gets the model of all rows.

    It does not extrapolate: far from the training rows every kernel value goes to 0 and the prediction to a constant.
    Source: Drucker et al., 1996, Support vector regression machines, NeurIPS 9; Smola and Schoelkopf, 2004, Statistics
    and Computing 14(3).
    """

    max_samples: int = 3000
    C: Sequence[float] = (1.0, 10.0)
    gamma: Sequence[float] = (0.05, 0.2, 1.0)
    default_C: float = 10.0  # noqa: N815 - C is the name of the library
    default_gamma: float = 0.2
    epsilon: float = 0.02
    min_count: int = 20
    clip: float = 1.0
    random_state: int = 0

    encoder_: LinearEncoder = field(init=False)
    models_: dict[str, dict[str, SvrModel]] = field(init=False)
    """Model by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.encoder_ = LinearEncoder(min_count=self.min_count, clip=self.clip).fit(X, feature_columns(self.columns_))
        encoded, tasks = self._encode(X), task_labels(X, self.columns_)
        rng = np.random.default_rng(self.random_state)
        self.models_ = {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            self.models_[target] = {}
            for name, group in groups_of(tasks, rows).items():
                cost, gamma = self._choose(encoded, log_y[:, index], group, validation, rng)
                drawn = self._draw(group, rng)
                self.models_[target][name] = self._fit_model(encoded[drawn], log_y[drawn, index], cost, gamma)

    def _encode(self, X: pd.DataFrame) -> np.ndarray:
        encoded = self.encoder_.transform(X)
        return encoded if encoded.shape[1] else np.zeros((len(X), 1))  # the library needs a column

    def _choose(
        self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, validation: np.ndarray, rng: np.random.Generator
    ) -> tuple[float, float]:
        """Return the cost and the kernel's coefficient with the smallest error on the validation rows."""
        from sklearn.model_selection import GridSearchCV, PredefinedSplit
        from sklearn.svm import SVR

        split = choice_split(rows, validation)
        if split is None:
            return self.default_C, self.default_gamma
        fitting, choosing = (self._draw(part, rng) for part in split)
        drawn = np.concatenate([fitting, choosing])
        spread, unit = _spread(log_y[fitting]), _spread(encoded[fitting])
        search = GridSearchCV(
            SVR(epsilon=self.epsilon),
            {"gamma": [gamma / unit**2 for gamma in self.gamma], "C": list(self.C)},
            scoring="neg_mean_absolute_error",
            cv=PredefinedSplit(np.repeat([-1, 0], [len(fitting), len(choosing)])),
            refit=False,
        ).fit(encoded[drawn], (log_y[drawn] - log_y[fitting].mean()) / spread)
        gamma = min(self.gamma, key=lambda value: abs(value / unit**2 - search.best_params_["gamma"]))
        return float(search.best_params_["C"]), float(gamma)

    def _draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        positions = np.flatnonzero(rows)
        if len(positions) <= self.max_samples:
            return positions
        return np.sort(rng.choice(positions, self.max_samples, replace=False))

    def _fit_model(self, encoded: np.ndarray, log_y: np.ndarray, cost: float, gamma: float) -> SvrModel:
        from sklearn.svm import SVR

        spread, center = _spread(log_y), float(log_y.mean())
        coefficient = gamma / _spread(encoded) ** 2
        fitted = SVR(C=cost, gamma=coefficient, epsilon=self.epsilon).fit(encoded, (log_y - center) / spread)
        return SvrModel(
            encoded[fitted.support_],
            spread * fitted.dual_coef_[0],
            center + spread * float(fitted.intercept_[0]),
            coefficient,
        )

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self._encode(X), task_labels(X, self.columns_)
        return self._apply_models(tasks, self.models_, lambda model, rows: model.predict(encoded[rows]))

    def _save(self, folder: Path) -> None:
        names = {target: list(models) for target, models in self.models_.items()}
        write_json(folder / "svm.json", {"encoder": self.encoder_.to_state(), "models": names})
        write_models(folder, "model", self.models_)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "svm.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        names = {target: state["models"][target] for target in self.targets_}
        self.models_ = read_models(folder, "model", names, SvrModel)


def _spread(values: np.ndarray) -> float:
    """Return the standard deviation of rows, over all columns together; 1 where all rows are equal."""
    return float(np.sqrt(values.var(axis=0).sum())) or 1.0
