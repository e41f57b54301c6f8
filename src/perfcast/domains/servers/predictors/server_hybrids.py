"""Hybrid predictors of server scores, with weights that depend on the shift of a machine from the training rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from perfcast.domains.servers.predictors.analytical import AnalyticalPredictor, BaseAnalyticalPredictor
from perfcast.domains.servers.predictors.analytical_time import AnalyticalTimePredictor
from perfcast.predictors.hybrid.residual_stacking import (
    HybridPredictor,
    Weights,
    average_best,
    candidate_weights,
    predict_logs,
)
from perfcast.predictors.hybrid.training_shift import (
    ANY,
    SEEN_CPU,
    SHIFTS,
    UNSEEN_CPU,
    UNSEEN_MICROARCHITECTURE,
    TrainingShift,
)
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.trees import ExtraTrees
from perfcast.uncertainty.backtest import backtest_pairs
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_ANALYTICAL_SHARES = {SEEN_CPU: 0.5, UNSEEN_CPU: 0.75, UNSEEN_MICROARCHITECTURE: 1.0, ANY: 0.5}
"""Share of `analytical` in the structure by shift; the rest is that of `analytical_time`."""

_MIN_ROWS = 50
"""Rows of a shift that a backtest must have to count for it."""


@dataclass(kw_only=True, eq=False, repr=False)
class ServerHybridPredictor(HybridPredictor):
    """A mean of `analytical` and `analytical_time` plus weighted learners of its residual.

    How well learners generalize depends on the shift of a machine: seen CPU, unseen CPU, or unseen
    microarchitecture. Each shift therefore has weights with a small mean absolute percentage error over the backtests.
    A shift with fewer than 50 rows in every backtest takes the weights of all rows. Without validation rows, or
    without `backtest_weights`, all learners have the same weight.

    The farther the machine, the more `analytical` counts in the mean: one half for the seen CPUs of the training rows,
    three quarters and all for the others. Forecasts of 15 releases of SPEC CPU2006 and CPU2017 are better by 1 to 4 %
    so than with one half everywhere. Smaller weights of learners for far machines were no better. `announced_gains` is
    a hyperparameter of both models.
    """

    announced_gains: bool = True
    backtest_weights: bool = True

    shift_: TrainingShift = field(init=False)

    def _new_structure(self) -> dict[str, Predictor]:
        return {
            "analytical": AnalyticalPredictor(announced_gains=self.announced_gains),
            "analytical_time": AnalyticalTimePredictor(announced_gains=self.announced_gains),
        }

    def _choose_weights(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> dict[str, Weights]:
        names = list(self._new_learners())
        candidates = [dict.fromkeys(names, 1.0 / len(names)), *candidate_weights(names)]
        pairs = backtest_pairs(validation, self._when) if self.backtest_weights else []
        backtests = [
            self._errors_by_shift(X[testing], log_y[testing], candidates) for testing in self._backtest(X, log_y, pairs)
        ]
        if not backtests:
            return dict.fromkeys(SHIFTS, candidates[0])
        chosen = {}
        for shift in SHIFTS:
            errors = [by_shift[shift] for by_shift in backtests if shift in by_shift]
            mean = np.mean(errors or [by_shift[ANY] for by_shift in backtests], axis=0)
            chosen[shift] = average_best(candidates, mean)
        return chosen

    def _errors_by_shift(self, X: pd.DataFrame, log_y: np.ndarray, candidates: list[Weights]) -> dict[str, list[float]]:
        """Return the mean error of every candidate for each shift with enough rows, and for ANY."""
        shift, measured = self.shift_.of(X), ~np.isnan(log_y).all(axis=1)
        masks = {name: measured & (shift == name) for name in SHIFTS}
        masks = {name: mask for name, mask in masks.items() if mask.sum() >= _MIN_ROWS} | {ANY: measured}
        errors: dict[str, list[float]] = {name: [] for name in masks}
        for error in self._candidate_errors(X, log_y, candidates):
            for name, mask in masks.items():
                errors[name].append(float(np.nanmean(error[mask])))
        return errors

    def _fit_components(self, X: pd.DataFrame, log_y: np.ndarray, rows: np.ndarray) -> None:
        self.shift_ = TrainingShift.fit(X[rows], self.columns_)
        super()._fit_components(X, log_y, rows)

    def _predict_structure(self, X: pd.DataFrame) -> np.ndarray:
        share = pd.Series(self.shift_.of(X)).map(_ANALYTICAL_SHARES).to_numpy(dtype=float)[:, None]
        models = [cast(BaseAnalyticalPredictor, self.structure_[name]) for name in ("analytical", "analytical_time")]
        if models[0].terms_ is not models[1].terms_ and models[0].terms_ == models[1].terms_:
            models[1].terms_ = models[0].terms_
        if models[0].terms_ is models[1].terms_:  # the rows are read once for both
            rows = models[0].read_rows(X)
            analytical, by_time = (np.log(np.exp(model.predict_rows(rows))) for model in models)
        else:
            analytical, by_time = (predict_logs(model, X) for model in models)
        structure: np.ndarray = share * analytical + (1 - share) * by_time
        return structure

    def _weight_groups(self, X: pd.DataFrame) -> np.ndarray:
        return self.shift_.of(X)

    def _save(self, folder: Path) -> None:
        super()._save(folder)
        write_json(folder / "shift.json", asdict(self.shift_))

    def _load(self, folder: Path) -> None:
        super()._load(folder)
        self.shift_ = TrainingShift(**read_state(folder / "shift.json"))


@dataclass(kw_only=True, eq=False, repr=False)
class HybridTreesPredictor(ServerHybridPredictor):
    """Analytical models with extremely randomized trees on their residual."""

    n_estimators: int = 100
    max_features: float = 0.3
    min_samples_leaf: int = 2
    random_state: int = 0

    def _new_learners(self) -> dict[str, Predictor]:
        return {
            "extra_trees": ExtraTrees(
                n_estimators=self.n_estimators,
                max_features=self.max_features,
                min_samples_leaf=self.min_samples_leaf,
                random_state=self.random_state,
            )
        }
