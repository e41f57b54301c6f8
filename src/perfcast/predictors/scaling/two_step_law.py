"""Two-step law of accuracies: size and length to the loss of the task, and that loss to the accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.predictors.scaling.law_fit import fit_power_sum
from perfcast.predictors.scaling.scaling_law import LawState, ScalingLawPredictor, evaluate_power_sum, fit_values
from perfcast.predictors.scaling.sigmoid_fit import MIN_RUNS, Sigmoid, fit_sigmoid
from perfcast.predictors.scaling.trained_runs import ACCURACY, TrainedRuns


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStepLawPredictor(ScalingLawPredictor):
    """x = E + A / N^a + B / D^a; accuracy = c + (1 - c) sigmoid(-k (x - m)).

    x is the loss, or the bits per byte, of the task that the column `loss_task` names, measured on the same runs. The
    second step is fitted to measured pairs, and predicts from the x of the first. c is the share of a random choice.
    Without such pairs an accuracy gets the law of its error rate. Losses get the first step.
    Source: Bhagia et al., Establishing Task Scaling Laws via Compute-Efficient Model Ladders, 2024, arXiv 2412.04403,
    with the single exponent of Gadre et al., 2024, arXiv 2403.08540.
    """

    def _fit_law(self, runs: TrainedRuns, values: np.ndarray, rows: np.ndarray, kind: str) -> LawState:
        pairs = _join_losses(runs, values, rows) if kind == ACCURACY else np.empty((0, 4))
        if len(np.unique(pairs[:, 0].round(6))) < MIN_RUNS:
            return fit_values(runs, values, rows, kind, tied=True).to_state()
        first = fit_power_sum(pairs[:, 2:], pairs[:, 0], tied=True)
        chance = float(np.median(runs.chance[rows]))
        second = fit_sigmoid(pairs[:, 0], pairs[:, 1], chance, rising=False)
        return {"loss": first.to_state(), "link": second.to_state()}

    def _evaluate(
        self, fits: dict[str, LawState], name: str, runs: TrainedRuns, rows: np.ndarray, kind: str
    ) -> np.ndarray:
        state = fits[name]
        if "link" not in state:
            return evaluate_power_sum(state, runs.logs[rows], kind)
        return Sigmoid.from_state(state["link"]).evaluate(evaluate_power_sum(state["loss"], runs.logs[rows], ""))


def _join_losses(runs: TrainedRuns, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return loss, accuracy, log parameters and log tokens of the rows whose run has the loss of its `loss_task`.

    Shapes: (pairs, 4).
    """
    keys = pd.MultiIndex.from_arrays([runs.runs[rows].astype(str), runs.loss_tasks[rows].astype(str)])
    known = ~np.isnan(values)
    index = pd.MultiIndex.from_arrays([runs.runs[known].astype(str), runs.tasks[known].astype(str)])
    losses = pd.Series(values[known], index=index)
    joined = losses[~index.duplicated()].reindex(keys).to_numpy()
    pairs = np.column_stack([joined, values[rows], runs.logs[rows]])
    return np.asarray(pairs[np.isfinite(joined)])
