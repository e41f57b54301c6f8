"""Mean of scaling laws, weighted by backtests over cuts in compute."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.scaling.datasets.scaling_columns import ACCURACY
from perfcast.domains.scaling.predictors import scaling_laws as laws
from perfcast.domains.scaling.predictors import trained_runs
from perfcast.predictors.factory import load_nested, save_nested
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.predictors.task_rows import measured_rows
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

CUTS = (0.5, 0.75)
"""Shares of the compute values below which a backtest fits; it predicts the runs above."""
MIN_FITTED = 6
"""Fewest distinct values of compute that a backtest fits."""

MIN_ABOVE_CHANCE = 0.02
"""Share above that of a random choice from which on an accuracy counts in the errors: chance depends on no law."""
_OF_ACCURACIES = ["broken_law", "two_step_law"]
"""Members that count for accuracies only: losses bend little, and a break made them worse in backtests."""
_TINY = 1e-4
"""Error added to every member, so that no weight is infinite."""


@dataclass(kw_only=True, eq=False, repr=False)
class ScalingEnsemblePredictor(Predictor):
    """ln y = sum of w_m(kind) ln y_m over the laws; w_m proportional to 1 / error_m^2.

    error_m is the mean absolute error in backtests: fits on the runs of less compute than a cut that predict those of
    more, and a fit on the rows that do not validate that predicts those that do. It is relative for losses and absolute
    for accuracies, and a kind of result has its own weights. Without a backtest the weights are equal. Losses have no
    part of the broken law and of the two-step law, which gives them the over-training law.
    Source: weights by inverse squared error after Bates and Granger, The Combination of Forecasts, 1969, Operational
    Research Quarterly 20(4); backtests with a rolling origin.
    """

    reads_tags_only: ClassVar[bool] = True

    weights_: dict[str, dict[str, float]] = field(init=False)
    """By kind of result, "" for an unknown one, and member."""
    kinds_: dict[str, str] = field(init=False)
    """Kind of the results of each task: a described run may name its task alone."""
    members_: dict[str, Predictor] = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        self.members_ = self._fit_members(X, log_y)
        runs = trained_runs.read_runs(X, self.columns_, trained_runs.known_medians(X, self.columns_))
        pairs = zip(runs.tasks.astype(str).tolist(), runs.kinds.astype(str).tolist(), strict=True)
        self.kinds_ = dict(pairs)
        with warnings.catch_warnings(action="ignore"):
            self.weights_ = self._choose_weights(X, log_y, validation, runs)

    def _fit_members(self, X: pd.DataFrame, log_y: np.ndarray) -> dict[str, Predictor]:
        y = pd.DataFrame(np.exp(log_y), index=X.index, columns=list(self.targets_))
        members: dict[str, Predictor] = {
            "broken_law": laws.BrokenLawPredictor(),
            "chinchilla_law": laws.ChinchillaLawPredictor(),
            "compute_sigmoid": laws.ComputeSigmoidPredictor(),
            "overtraining_law": laws.OvertrainingLawPredictor(),
            "two_step_law": laws.TwoStepLawPredictor(),
        }
        return {name: member.fit(X, y, columns=self.columns_) for name, member in members.items()}

    def _choose_weights(
        self,
        X: pd.DataFrame,
        log_y: np.ndarray,
        validation: np.ndarray,
        runs: trained_runs.TrainedRuns,
    ) -> dict[str, dict[str, float]]:
        """Return the weights by kind of result from the errors of all backtests."""
        errors: list[tuple[str, str, float]] = []
        for fitting, testing in _backtests(runs, validation):
            if not (~np.isnan(log_y[fitting])).any(axis=0).all():
                continue
            for name, member in self._fit_members(X[fitting], log_y[fitting]).items():
                predicted = predict_logs(member, X[testing])
                measured = log_y[testing]
                kinds = runs.kinds[testing].astype(str)
                relative = np.abs(predicted - measured)
                absolute = np.abs(np.exp(predicted) - np.exp(measured))
                error = np.where((kinds == ACCURACY)[:, None], absolute, relative)
                is_above = np.nanmax(np.exp(measured), axis=1) > runs.chance[testing] + MIN_ABOVE_CHANCE
                counts = np.isfinite(error).any(axis=1) & (is_above | (kinds != ACCURACY))
                means = pd.Series(np.nanmean(error[counts], axis=1)).groupby(kinds[counts]).mean()
                errors += [(str(kind), name, float(mean)) for kind, mean in means.items()]
        if not errors:
            return {}
        listed = pd.DataFrame(errors, columns=["kind", "member", "error"])
        table = listed.groupby(["kind", "member"])["error"].mean().unstack()
        weights = {str(kind): _inverse_squares(row, str(kind)) for kind, row in table.iterrows()}
        return weights | {"": _inverse_squares(table.mean(), "")}

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = {name: predict_logs(member, X) for name, member in self.members_.items()}
        equal = dict.fromkeys(logs, 1 / len(logs))
        kinds = self._kinds_of(trained_runs.read_runs(X, self.columns_, [1.0, 1.0]))
        total = np.zeros((len(X), len(self.targets_)))
        for name, member in logs.items():
            by_kind = {kind: weights[name] for kind, weights in self.weights_.items()}
            other = by_kind.get("", equal[name])
            total = total + np.array([by_kind.get(kind, other) for kind in kinds])[:, None] * member
        return total

    def _kinds_of(self, runs: trained_runs.TrainedRuns) -> list[str]:
        """Return the kind of every row, that of its task in training where the task is known."""
        pairs = zip(
            runs.tasks.astype(str).tolist(),
            runs.kinds.astype(str).tolist(),
            strict=True,
        )
        return [self.kinds_.get(task, kind) for task, kind in pairs]

    def _save(self, folder: Path) -> None:
        state = {
            "weights": self.weights_,
            "kinds": self.kinds_,
            "members": list(self.members_),
        }
        write_json(folder / "weights.json", state)
        save_nested(folder, self.members_)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "weights.json")
        self.weights_ = state["weights"]
        self.kinds_ = state["kinds"]
        self.members_ = load_nested(folder, state["members"])


def _backtests(runs: trained_runs.TrainedRuns, validation: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows to fit on and those to predict. Shapes: (n,) bool each."""
    compute = runs.log_compute.round(6)
    values = np.unique(compute)
    for share in CUTS:
        count = int(share * len(values))
        if MIN_FITTED <= count < len(values):
            below = compute < values[count]
            yield below, ~below
    if validation.any() and not validation.all():
        yield ~validation, validation


def _inverse_squares(errors: pd.Series, kind: str) -> dict[str, float]:
    """Return weights that sum to 1, each proportional to the inverse square of the member's error."""
    inverse = 1 / (errors + _TINY) ** 2
    if kind != ACCURACY:
        inverse[_OF_ACCURACIES] = 0.0
    return {str(name): float(value) for name, value in (inverse / inverse.sum()).items()}
