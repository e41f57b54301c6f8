"""Base of the hybrid predictors: an analytical structure plus weighted learners of its residual."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import coded
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.predictors.task_rows import measured_rows
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

MAX_RESIDUAL = 0.3
"""Residuals (natural logarithms) are clipped here: larger ones are errors of the table or disturbed machines."""

_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
_TIE = 1.02
"""Weights with errors within this factor of the smallest count as equal."""

Weights = dict[str, float]
"""Weight of every learner by name."""


@dataclass(kw_only=True, eq=False, repr=False)
class HybridPredictor(Predictor):
    """log y = structure + sum of weight x learner of the residual.

    The structure is the mean of analytical models, which extrapolate to machines unlike the training rows. The learners
    fit repeated deviations from it. A subclass assigns every row to a group and chooses the weights of each group on
    rows that the components were not fitted to. They are in steps of a quarter and sum to at most 1.

    Source: stacking (Breiman, 1996, Machine Learning 24) of regressions on the residual of a fixed structure.
    """

    structure_: dict[str, Predictor] = field(init=False)
    learners_: dict[str, Predictor] = field(init=False)
    weights_: dict[str, Weights] = field(init=False)
    """By group of rows."""

    @abstractmethod
    def _new_structure(self) -> dict[str, Predictor]:
        """Return the unfitted analytical models by name."""

    @abstractmethod
    def _new_learners(self) -> dict[str, Predictor]:
        """Return the unfitted learners of the residual by name."""

    @abstractmethod
    def _choose_weights(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> dict[str, Weights]:
        """Return the weights by group of rows."""

    @abstractmethod
    def _weight_groups(self, X: pd.DataFrame) -> np.ndarray:
        """Return the group of every row, a key of `weights_`, (n,) object."""

    def _residual_limit(self, residual: np.ndarray) -> float:
        return MAX_RESIDUAL

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        X = coded(X)
        self.weights_ = self._choose_weights(X, log_y, validation)
        self._fit_components(X, log_y, np.ones(len(X), dtype=bool))

    def _fit_components(self, X: pd.DataFrame, log_y: np.ndarray, rows: np.ndarray) -> None:
        """Fit structure and learners to some rows.

        They get no validation rows. Otherwise the final components would differ from those that the weights were chosen
        for. Analytical models that chose their hyperparameters were no better beside learners (backtests before 2023).
        """
        X, log_y = X[rows], log_y[rows]
        when = None if self._when is None else pd.Series(self._when[rows])

        def fit(predictor: Predictor, logs: np.ndarray) -> Predictor:
            y = pd.DataFrame(np.exp(logs), columns=list(self.targets_))
            return predictor.fit(X, y, columns=self.columns_, when=when)

        self.structure_ = {name: fit(model, log_y) for name, model in self._new_structure().items()}
        residual = log_y - self._predict_structure(X)
        limit = self._residual_limit(residual)
        residual = np.clip(residual, -limit, limit)
        self.learners_ = {name: fit(learner, residual) for name, learner in self._new_learners().items()}

    def _backtest(
        self, X: pd.DataFrame, log_y: np.ndarray, pairs: Iterable[tuple[np.ndarray, np.ndarray]]
    ) -> Iterator[np.ndarray]:
        """Fit the components to the first rows of every pair and yield the second; skip pairs without targets."""
        for fitting, testing in pairs:
            if (~np.isnan(log_y[fitting])).any(axis=0).all() and not np.isnan(log_y[testing]).all():
                self._fit_components(X, log_y, fitting)
                yield testing

    def _candidate_errors(
        self, X: pd.DataFrame, log_y: np.ndarray, candidates: Iterable[Weights]
    ) -> Iterator[np.ndarray]:
        """Yield the absolute relative errors under each candidate, (n, targets), NaN where not measured."""
        structure = self._predict_structure(X)
        residuals = {name: predict_logs(learner, X) for name, learner in self.learners_.items()}
        for weights in candidates:
            logs = structure + sum(weights[name] * residual for name, residual in residuals.items())
            yield np.abs(np.expm1(logs - log_y))

    def _predict_structure(self, X: pd.DataFrame) -> np.ndarray:
        logs: np.ndarray = np.mean([predict_logs(model, X) for model in self.structure_.values()], axis=0)
        return logs

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        X = coded(X)
        groups = pd.Series(self._weight_groups(X))
        logs = self._predict_structure(X)
        for name, learner in self.learners_.items():
            by_group = {group: weights[name] for group, weights in self.weights_.items()}
            weight = groups.map(by_group).to_numpy(dtype=float)[:, None]
            if weight.any():
                logs = logs + weight * predict_logs(learner, X)
        return logs

    def _save(self, folder: Path) -> None:
        state = {"weights": self.weights_, "structure": list(self.structure_), "learners": list(self.learners_)}
        write_json(folder / "weights.json", state)
        for name, component in {**self.structure_, **self.learners_}.items():
            component.save(folder / name)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "weights.json")
        self.weights_ = state["weights"]
        self.structure_ = {name: load_predictor(folder / name) for name in state["structure"]}
        self.learners_ = {name: load_predictor(folder / name) for name in state["learners"]}


def candidate_weights(names: Sequence[str]) -> list[Weights]:
    """Return all weights in steps of a quarter that sum to at most 1."""
    steps = (values for values in product(_STEPS, repeat=len(names)) if sum(values) <= 1)
    return [dict(zip(names, values, strict=True)) for values in steps]


def average_best(candidates: Sequence[Weights], errors: np.ndarray) -> Weights:
    """Return the mean of the candidates with nearly the smallest error, (candidates,).

    Few releases cannot separate neighboring weights, and a mean avoids an extreme choice by chance.
    """
    best = [weights for weights, error in zip(candidates, errors, strict=True) if error <= _TIE * errors.min()]
    return {name: float(np.mean([weights[name] for weights in best])) for name in candidates[0]}


def predict_logs(predictor: Predictor, X: pd.DataFrame) -> np.ndarray:
    """Return the natural logarithms of the predictions, (n, targets)."""
    logs: np.ndarray = np.log(predictor.predict(X).to_numpy(dtype=float))
    return logs
