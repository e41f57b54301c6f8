"""Linear regressions of log targets, one per task, with a penalty chosen on validation rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import choice_split, fitted_by_group, groups_of, measured_rows, task_labels
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_TOLERANCE = 1e-6
"""Tolerance of the coordinate descent, a share of the targets' squares: an error of about 0.1 % of their spread."""

Penalty = dict[str, float]
"""Penalty parameters of a regression by name: `alpha`, and `l1_ratio` where it has one."""


@dataclass(kw_only=True, eq=False, repr=False)
class LinearPredictor(Predictor):
    """Weighted sum of encoded columns on log targets, with separate weights for every task.

    Columns are encoded by `LinearEncoder`: logarithms where positive, standardized. The penalty is that with the
    smallest mean absolute log error on the task's validation rows, of equal ones the strongest. Without validation
    rows it is `default_alpha`. The weights are then fitted to all training rows. Penalties are per training row. A task
    that training did not have gets the weights of all rows.
    """

    alphas: Sequence[float]
    default_alpha: float
    min_count: int = 20
    clip: float = 1.0

    encoder_: LinearEncoder = field(init=False)
    penalties_: dict[str, dict[str, Penalty]] = field(init=False)
    """Penalty by target and task."""
    weights_: dict[str, dict[str, list[float]]] = field(init=False)
    """Constant and weights by target and task."""
    n_iter_: int = field(init=False)
    """Most iterations that a task took; 1 where the solution is in closed form."""

    @abstractmethod
    def _choose(self, encoded: np.ndarray, log_y: np.ndarray, fitting: np.ndarray, choosing: np.ndarray) -> Penalty:
        """Return the penalty for weights that are fitted to the first rows, by their error on the second."""

    @abstractmethod
    def _solve(self, encoded: np.ndarray, log_y: np.ndarray, penalty: Penalty) -> np.ndarray:
        """Return the constant and the weights, (1 + p,)."""

    def _default_penalty(self) -> Penalty:
        return {"alpha": self.default_alpha}

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.encoder_ = LinearEncoder(min_count=self.min_count, clip=self.clip).fit(X, feature_columns(self.columns_))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        self.penalties_, self.weights_, self.n_iter_ = {}, {}, 1
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            fit = partial(self._fit_group, encoded, log_y[:, index], validation)
            fitted = fitted_by_group(groups_of(tasks, rows), fit)
            self.penalties_[target] = {name: penalty for name, (penalty, _) in fitted.items()}
            self.weights_[target] = {name: weights for name, (_, weights) in fitted.items()}

    def _fit_group(
        self, encoded: np.ndarray, log_y: np.ndarray, validation: np.ndarray, rows: np.ndarray
    ) -> tuple[Penalty, list[float]]:
        """Return the chosen penalty and the weights of one task, the constant first."""
        if not encoded.shape[1]:
            return self._default_penalty(), [float(log_y[rows].mean())]
        split = choice_split(rows, validation)
        penalty = self._default_penalty() if split is None else self._choose(encoded, log_y, *split)
        return penalty, self._solve(encoded[rows], log_y[rows], penalty).tolist()

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        return self._apply_models(tasks, self.weights_, lambda each, rows: apply_weights(encoded[rows], np.array(each)))

    def _save(self, folder: Path) -> None:
        state = {"encoder": self.encoder_.to_state(), "penalties": self.penalties_, "weights": self.weights_}
        write_json(folder / "linear.json", state)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "linear.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        self.penalties_, self.weights_ = state["penalties"], state["weights"]


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
        center, constant = encoded.mean(axis=0), float(log_y.mean())
        centered = encoded - center
        return cls(center, constant, centered.T @ centered / len(encoded), (log_y - constant) @ centered / len(encoded))

    def solve(self, alpha: float) -> np.ndarray:
        """Return the constant and the weights, (1 + p,)."""
        weights = np.linalg.solve(self.gram + alpha * np.eye(len(self.gram)), self.cross)
        return np.concatenate([[self.constant - self.center @ weights], weights])


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(LinearPredictor):
    """Least squares with a penalty on squared weights, in closed form: every penalty shares one matrix product.

    Source: Hoerl and Kennard, 1970, Technometrics 12(1).
    """

    alphas: Sequence[float] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    default_alpha: float = 1e-3

    def _choose(self, encoded: np.ndarray, log_y: np.ndarray, fitting: np.ndarray, choosing: np.ndarray) -> Penalty:
        moments = _Moments.of(encoded[fitting], log_y[fitting])
        errors = {
            alpha: float(np.abs(apply_weights(encoded[choosing], moments.solve(alpha)) - log_y[choosing]).mean())
            for alpha in sorted(self.alphas, reverse=True)
        }
        return {"alpha": float(min(errors, key=errors.__getitem__))}

    def _solve(self, encoded: np.ndarray, log_y: np.ndarray, penalty: Penalty) -> np.ndarray:
        return _Moments.of(encoded, log_y).solve(penalty["alpha"])


@contextmanager
def _repeated_columns() -> Iterator[None]:
    """Silence the descent: repeated columns have many nearly equal solutions, whose predictions are the same."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@dataclass(kw_only=True, eq=False, repr=False)
class Lasso(LinearPredictor):
    """Least squares with a penalty on absolute weights, solved by at most `max_iter` sweeps of coordinate descent.

    Of columns with the same information it selects one, so few columns have weights. Categories are 0 or 1 and not
    standardized, so the penalty holds a rare one back more. `GridSearchCV` chooses the penalty.
    Source: Tibshirani, 1996, Journal of the Royal Statistical Society B 58(1); the descent: Friedman, Hastie and
    Tibshirani, 2010, Journal of Statistical Software 33(1).
    """

    alphas: Sequence[float] = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    default_alpha: float = 3e-4
    max_iter: int = 10_000

    def _regressor(self, penalty: Penalty) -> Any:
        """Return an unfitted regression of scikit-learn."""
        from sklearn import linear_model

        return linear_model.Lasso(alpha=penalty["alpha"], max_iter=self.max_iter, tol=_TOLERANCE, precompute=True)

    def _grid(self) -> dict[str, list[float]]:
        """Return the search space of the regression, strongest penalty first."""
        return {"alpha": sorted(self.alphas, reverse=True)}

    def _choose(self, encoded: np.ndarray, log_y: np.ndarray, fitting: np.ndarray, choosing: np.ndarray) -> Penalty:
        from sklearn.model_selection import GridSearchCV, PredefinedSplit

        rows = fitting | choosing
        search = GridSearchCV(
            self._regressor(self._default_penalty()),
            self._grid(),
            scoring="neg_mean_absolute_error",
            cv=PredefinedSplit(np.where(choosing[rows], 0, -1)),
            refit=False,
        )
        with _repeated_columns():
            search.fit(encoded[rows], log_y[rows])
        return {name: float(value) for name, value in search.best_params_.items()}

    def _solve(self, encoded: np.ndarray, log_y: np.ndarray, penalty: Penalty) -> np.ndarray:
        with _repeated_columns():
            model = self._regressor(penalty).fit(encoded, log_y)
        self.n_iter_ = max(self.n_iter_, getattr(model, "n_iter_", None) or 1)
        return np.concatenate([[model.intercept_], model.coef_])


@dataclass(kw_only=True, eq=False, repr=False)
class ElasticNet(Lasso):
    """Least squares with a penalty of alpha (l1_ratio |w| + (1 - l1_ratio) w^2 / 2).

    Unlike the lasso it gives columns with the same information equal weights. `GridSearchCV` chooses `alpha` and
    `l1_ratio` together; without validation rows the first of `l1_ratios` is used. For `max_iter` see `Lasso`.
    Source: Zou and Hastie, 2005, Journal of the Royal Statistical Society B 67(2).
    """

    l1_ratios: Sequence[float] = (0.5, 0.1, 0.9)

    def _regressor(self, penalty: Penalty) -> Any:
        from sklearn import linear_model

        return linear_model.ElasticNet(**penalty, max_iter=self.max_iter, tol=_TOLERANCE, precompute=True)

    def _grid(self) -> dict[str, list[float]]:
        return {**super()._grid(), "l1_ratio": list(self.l1_ratios)}

    def _default_penalty(self) -> Penalty:
        return {"alpha": self.default_alpha, "l1_ratio": self.l1_ratios[0]}


def apply_weights(encoded: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of rows, the constant being the first weight. Shapes: (n, p), (1 + p,) -> (n,)."""
    # A row's sum in a fixed order: a matrix product may round differently for one row than for many.
    return np.asarray(weights[0] + (encoded * weights[1:]).sum(axis=1))
