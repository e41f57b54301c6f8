"""Two-step law of accuracies: size and length to the loss of the task, and that loss to the accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.domains.scaling.predictors.law_fit import fit_power_sums
from perfcast.domains.scaling.predictors.scaling_law import (
    LawState,
    RunGroup,
    ScalingLawPredictor,
    evaluate_power_sum,
    fit_values,
)
from perfcast.domains.scaling.predictors.sigmoid_fit import MIN_RUNS, SharesOfRuns, Sigmoid, fit_sigmoids
from perfcast.domains.scaling.predictors.trained_runs import ACCURACY, TrainedRuns


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStepLawPredictor(ScalingLawPredictor):
    """x = E + A / N^a + B / D^a; accuracy = c + (1 - c) sigmoid(-k (x - m)).

    x is the loss, or the bits per byte, of the task that the column `loss_task` names, measured on the same runs. The
    second step is fitted to measured pairs, and predicts from the x of the first. c is the share of a random choice.
    Without such pairs an accuracy gets the law of its error rate. Losses get the first step.
    Source: Bhagia et al., Establishing Task Scaling Laws via Compute-Efficient Model Ladders, 2024, arXiv 2412.04403,
    with the single exponent of Gadre et al., 2024, arXiv 2403.08540.
    """

    def _fit_laws(self, runs: TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]) -> list[LawState]:
        losses = join_losses(runs, values)
        linked = [
            group._replace(rows=group.rows[np.isfinite(losses[group.rows])])
            if group.kind == ACCURACY
            else group._replace(rows=group.rows[:0])
            for group in groups
        ]
        is_linked = [len(np.unique(losses[group.rows].round(6))) >= MIN_RUNS for group in linked]
        pairs = [group.rows for group, chosen in zip(linked, is_linked, strict=True) if chosen]
        others = [group for group, chosen in zip(groups, is_linked, strict=True) if not chosen]
        firsts = fit_power_sums([(runs.logs[rows], losses[rows]) for rows in pairs], tied=True)
        tasks = [SharesOfRuns(losses[rows], values[rows], float(np.median(runs.chance[rows]))) for rows in pairs]
        seconds = fit_sigmoids(tasks, rising=False)
        steps = iter(zip(firsts, seconds, strict=True))
        direct = iter(fit_values(runs, values, others, tied=True))
        states: list[LawState] = []
        for chosen in is_linked:
            if chosen:
                first, second = next(steps)
                states.append({"loss": first.to_state(), "link": second.to_state()})
            else:
                states.append(next(direct).to_state())
        return states

    def _evaluate(
        self, fits: dict[str, LawState], name: str, runs: TrainedRuns, rows: np.ndarray, kind: str
    ) -> np.ndarray:
        state = fits[name]
        if "link" not in state:
            return evaluate_power_sum(state, runs.logs[rows], kind)
        return Sigmoid.from_state(state["link"]).evaluate(evaluate_power_sum(state["loss"], runs.logs[rows], ""))


def join_losses(runs: TrainedRuns, values: np.ndarray) -> np.ndarray:
    """Return for every row the value of its `loss_task` measured on the same run, NaN without one, (n,)."""
    keys = pd.MultiIndex.from_arrays([runs.runs.astype(str), runs.loss_tasks.astype(str)])
    known = ~np.isnan(values)
    index = pd.MultiIndex.from_arrays([runs.runs[known].astype(str), runs.tasks[known].astype(str)])
    losses = pd.Series(values[known], index=index)
    return losses[~index.duplicated()].reindex(keys).to_numpy()
