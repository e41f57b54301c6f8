"""The laws as structure, and learners of what they leave: weights are chosen by backtest inside training."""

from __future__ import annotations

from abc import abstractmethod
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import coded
from perfcast.predictors.analytical.analytical import AnalyticalPredictor
from perfcast.predictors.analytical.analytical_time import AnalyticalTimePredictor
from perfcast.predictors.hybrid.training_shift import ANY, SHIFTS, TrainingShift
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.predictors.task_rows import measured_rows
from perfcast.uncertainty.backtest import backtest_pairs
from perfcast.utils.io import read_json, write_json

FAR = 0.3
"""A residual (logarithm) beyond this is a mistake of the entry or a crippled machine: it is learned as this much."""

_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
_ALIKE = 1.02
"""Weights whose errors in backtests are within this factor of the smallest are not told apart."""

_LEAST_ROWS = 50
"""Rows of one kind of novelty that a backtest must hold to say something about it."""


class HybridPredictor(Predictor):
    """log y = (log law + log time law) / 2 + sum of weight x learner of the residual.

    The laws carry the forecast to machines unlike any in training; the learners fill in what repeats. How far that
    holds depends on how new a machine is, so there are weights for parts that training knows, for new parts of a known
    core, and for new cores. The weights (in steps of a quarter, at most 1 together) are the mean of those with nearly
    the smallest mean absolute percentage error over the backtests of the question (`_backtests.py`): where a learner
    only repeats the past, they say so and its weight is small. A kind of novelty that the backtests hardly hold takes
    the weights of all their rows. Without `validation` rows the learners count the same. The laws always do: in backtests
    before 2023 a share chosen for them was worse than one half for machines with a new core (4.8 against 4.5 %), and no
    better for others.
    Source: stacking (Breiman, 1996, Machine Learning 24) of regressions on the residuals of a fixed structure.
    """

    announced: bool
    """Whether the laws know what makers announced."""
    backtest_weights: bool
    """Whether backtests choose the weights; the learners count the same otherwise."""

    laws_: dict[str, Predictor]
    learners_: dict[str, Predictor]
    weights_: dict[str, dict[str, float]]
    """By novelty."""
    shift_: TrainingShift

    @abstractmethod
    def _learners(self) -> dict[str, Predictor]:
        """Return the unfitted learners of the residual by name."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        X = coded(X)
        candidates = self._candidates(list(self._learners()))
        errors = []
        for fitting, choosing in backtest_pairs(validation, self._when) if self.backtest_weights else []:
            if (~np.isnan(log_y[fitting])).any(axis=0).all() and not np.isnan(log_y[choosing]).all():
                self._fit_parts(X, log_y, fitting)
                errors.append(self._errors(X[choosing], log_y[choosing], candidates))
        self.weights_ = {novelty: _weights(candidates, errors, novelty) for novelty in SHIFTS}
        self._fit_parts(X, log_y, np.ones(len(X), dtype=bool))

    def _fit_parts(self, X: pd.DataFrame, log_y: np.ndarray, rows: np.ndarray) -> None:
        when = None if self._when is None else pd.Series(self._when[rows])
        given, wanted = X[rows], log_y[rows]

        def fitted(predictor: Predictor, logs: np.ndarray) -> Predictor:
            # Nothing is chosen inside: every part is in the end what it was in the backtests, where its weight was
            # chosen. Laws that chose their settings were no better with learners beside them (backtests before 2023).
            y = pd.DataFrame(np.exp(logs), columns=list(self.targets_))
            return predictor.fit(given, y, columns=self.columns_, when=when)

        laws = {
            "analytical": AnalyticalPredictor(announced=self.announced),
            "analytical_time": AnalyticalTimePredictor(announced=self.announced),
        }
        self.laws_ = {name: fitted(law, wanted) for name, law in laws.items()}
        rest = np.clip(wanted - self._structure(given), -FAR, FAR)
        self.learners_ = {name: fitted(learner, rest) for name, learner in self._learners().items()}
        self.shift_ = TrainingShift.fit(given, self.columns_)

    def _structure(self, X: pd.DataFrame) -> np.ndarray:
        logs: np.ndarray = np.mean([_logs(law, X) for law in self.laws_.values()], axis=0)
        return logs

    def _errors(self, X: pd.DataFrame, log_y: np.ndarray, candidates: list[dict[str, float]]) -> pd.DataFrame:
        """Return the error of every candidate (columns) by novelty (index) on rows that the parts have not seen."""
        residuals = {name: _logs(learner, X) for name, learner in self.learners_.items()}
        structure = self._structure(X)
        novelty, measured = self.shift_.of(X), ~np.isnan(log_y).all(axis=1)
        groups = {**{name: measured & (novelty == name) for name in SHIFTS}, ANY: measured}
        errors: dict[str, list[float]] = {name: [] for name, rows in groups.items() if rows.sum() >= _LEAST_ROWS}
        errors.setdefault(ANY, [])
        for weights in candidates:
            forecast = structure + sum(weights[name] * value for name, value in residuals.items())
            error = np.abs(np.expm1(forecast - log_y))
            for name, values in errors.items():
                values.append(float(np.nanmean(error[groups[name]])))
        return pd.DataFrame(errors).T

    @staticmethod
    def _candidates(names: list[str]) -> list[dict[str, float]]:
        """Return the weights to choose from, the ones used without a backtest first."""
        equal = dict.fromkeys(names, 1.0 / len(names))
        steps = [values for values in product(_STEPS, repeat=len(names)) if sum(values) <= 1]
        return [equal, *(dict(zip(names, values, strict=True)) for values in steps)]

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        X = coded(X)
        novelty = self.shift_.of(X)
        forecast = self._structure(X)
        for name, learner in self.learners_.items():
            by_kind = {kind: own[name] for kind, own in self.weights_.items()}
            weight = pd.Series(novelty).map(by_kind).to_numpy(dtype=float)[:, None]
            if weight.any():
                forecast = forecast + weight * _logs(learner, X)
        return forecast

    def _save(self, folder: Path) -> None:
        write_json(folder / "weights.json", {"weights": self.weights_, "novelty": self.shift_.to_state()})
        for name, part in {**self.laws_, **self.learners_}.items():
            part.save(folder / name)

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "weights.json")
        self.weights_, self.shift_ = state["weights"], TrainingShift.from_state(state["novelty"])
        self.laws_ = {name: load_predictor(folder / name) for name in ("analytical", "analytical_time")}
        self.learners_ = {name: load_predictor(folder / name) for name in self.weights_[ANY]}


def _weights(
    candidates: list[dict[str, float]], backtest_weights: list[pd.DataFrame], novelty: str
) -> dict[str, float]:
    """Return the mean of the candidates that are nearly as good as the best one for rows of this novelty.

    The errors are means over the backtests that hold such rows, else over all their rows. A few launches cannot tell
    neighboring weights apart, and a mean of those that they find alike is not led by chance to an extreme one.
    """
    found = [errors.loc[novelty] for errors in backtest_weights if novelty in errors.index]
    found = found or [errors.loc[ANY] for errors in backtest_weights]
    if not found:
        return candidates[0]
    errors = np.mean(found, axis=0)
    near = [weights for weights, error in zip(candidates, errors, strict=True) if error <= _ALIKE * errors.min()]
    return {name: float(np.mean([weights[name] for weights in near])) for name in candidates[0]}


def _logs(predictor: Predictor, X: pd.DataFrame) -> np.ndarray:
    logs: np.ndarray = np.log(predictor.predict(X).to_numpy())
    return logs
