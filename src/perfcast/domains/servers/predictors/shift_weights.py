"""Weights of the hybrid predictors of server scores by the shift of a machine from the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
import pandas as pd

from perfcast.domains.servers.predictors.analytical import BaseAnalyticalPredictor
from perfcast.domains.servers.predictors.training_shift import (
    ANY,
    SEEN_CPU,
    SHIFTS,
    UNSEEN_CPU,
    UNSEEN_MICROARCHITECTURE,
    TrainingShift,
)
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.predictors.residual_stack import (
    EqualWeights,
    ResidualStack,
    Weights,
    average_best,
    candidate_weights,
    equal_weights,
)
from perfcast.schema.table import Column
from perfcast.uncertainty.backtest import backtest_pairs

_ANALYTICAL_SHARES = {
    SEEN_CPU: 0.5,
    UNSEEN_CPU: 0.75,
    UNSEEN_MICROARCHITECTURE: 1.0,
    ANY: 0.5,
}
"""Share of `analytical` in the structure by shift; the rest is that of `analytical_time`."""

_MIN_ROWS = 50
"""Rows of a shift that a backtest must have to count for it."""


@dataclass(kw_only=True)
class ShiftWeights(EqualWeights):
    """Weights by shift, and a structure of `analytical` and `analytical_time` with shares by shift.

    How well learners generalize depends on the shift of a machine: seen CPU, unseen CPU, or unseen
    microarchitecture. Each shift therefore has weights with a small mean absolute percentage error over the backtests.
    A shift with fewer than 50 rows in every backtest takes the weights of all rows. Without validation rows, or
    without `backtests`, all learners have the same weight.

    The farther the machine, the more `analytical` counts in the mean: one half for the seen CPUs of the training rows,
    three quarters and all for the others. Forecasts of 15 releases of SPEC CPU2006 and CPU2017 are better by 1 to 4 %
    so than with one half everywhere. Smaller weights of learners for far machines were no better.
    """

    backtests: bool = True

    shift_: TrainingShift = field(init=False)

    def fit(self, X: pd.DataFrame, columns: Sequence[Column]) -> None:
        """Store the CPU models and microarchitectures of the rows that the components are fitted to."""
        self.shift_ = TrainingShift.fit(X, columns)

    def groups(self, X: pd.DataFrame, columns: Sequence[Column]) -> np.ndarray:
        """Return the shift of every row."""
        return self.shift_.of(X)

    def choose(
        self, stack: ResidualStack, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray
    ) -> dict[str, Weights]:
        """Return the weights by shift."""
        names = stack.learner_names
        candidates = [equal_weights(names), *candidate_weights(names)]
        pairs = backtest_pairs(validation, stack.training_dates) if self.backtests else []
        backtests = [
            self._errors_by_shift(stack, X[testing], log_y[testing], candidates)
            for testing in stack.backtest(X, log_y, pairs)
        ]
        if not backtests:
            return dict.fromkeys(SHIFTS, candidates[0])
        chosen = {}
        for shift in SHIFTS:
            errors = [by_shift[shift] for by_shift in backtests if shift in by_shift]
            mean = np.mean(errors or [by_shift[ANY] for by_shift in backtests], axis=0)
            chosen[shift] = average_best(candidates, mean)
        return chosen

    def _errors_by_shift(
        self, stack: ResidualStack, X: pd.DataFrame, log_y: np.ndarray, candidates: list[Weights]
    ) -> dict[str, list[float]]:
        """Return the mean error of every candidate for each shift with enough rows, and for ANY."""
        shift = self.shift_.of(X)
        measured = ~np.isnan(log_y).all(axis=1)
        masks = {name: measured & (shift == name) for name in SHIFTS}
        masks = {name: mask for name, mask in masks.items() if mask.sum() >= _MIN_ROWS} | {ANY: measured}
        errors: dict[str, list[float]] = {name: [] for name in masks}
        for error in stack.candidate_errors(X, log_y, candidates):
            for name, mask in masks.items():
                errors[name].append(float(np.nanmean(error[mask])))
        return errors

    def predict_structure(self, structure: Mapping[str, Predictor], X: pd.DataFrame) -> np.ndarray:
        """Return the mean of both analytical models, weighted by the shift of every row."""
        share = pd.Series(self.shift_.of(X)).map(_ANALYTICAL_SHARES).to_numpy(dtype=float)[:, None]
        models = [cast(BaseAnalyticalPredictor, structure[name]) for name in ("analytical", "analytical_time")]
        if models[0].terms_ is not models[1].terms_ and models[0].terms_ == models[1].terms_:
            models[1].terms_ = models[0].terms_
        if models[0].terms_ is models[1].terms_:  # the rows are read once for both
            rows = models[0].read_rows(X)
            analytical, by_time = (np.log(np.exp(model.predict_rows(rows))) for model in models)
        else:
            analytical, by_time = (predict_logs(model, X) for model in models)
        return np.asarray(share * analytical + (1 - share) * by_time)

    def to_state(self) -> dict[str, Any]:
        """Return the shift of the training rows."""
        return asdict(self.shift_)

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over the shift of the training rows."""
        self.shift_ = TrainingShift(**state)
