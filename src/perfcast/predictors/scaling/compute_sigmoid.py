"""Laws in compute alone: a sigmoid of its logarithm for accuracies, a power for losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfcast.predictors.scaling.law_fit import PowerSum, fit_power_sum
from perfcast.predictors.scaling.scaling_law import LawState, ScalingLawPredictor
from perfcast.predictors.scaling.sigmoid_fit import Sigmoid, fit_sigmoid
from perfcast.predictors.scaling.trained_runs import ACCURACY, TrainedRuns


@dataclass(kw_only=True, eq=False, repr=False)
class ComputeSigmoidPredictor(ScalingLawPredictor):
    """accuracy = f c + (1 - f c) sigmoid(s (ln C - m)); loss = E + K C^-g.

    C = 6 N D is the compute and c the share of a random choice, so an accuracy has two parameters. It cannot tell two
    runs of one compute apart. `floor_share` is f: validation runs of the ladder lie nearer to a floor below chance,
    where the sigmoid is flatter, those of open_lm to chance itself.
    Source: the sigmoid of Ruan, Maddison and Hashimoto, Observational Scaling Laws, 2024, arXiv 2405.10938, section 3;
    loss after Kaplan et al., 2020, arXiv 2001.08361, with an irreducible term.
    """

    floor_share: float = 0.5

    def _fit_law(self, runs: TrainedRuns, values: np.ndarray, rows: np.ndarray, kind: str) -> LawState:
        compute = runs.log_compute[rows]
        if kind == ACCURACY:
            floor = self.floor_share * float(np.median(runs.chance[rows]))
            return fit_sigmoid(compute, values[rows], floor, rising=True).to_state()
        return fit_power_sum(compute[:, None], values[rows]).to_state()

    def _evaluate(
        self, fits: dict[str, LawState], name: str, runs: TrainedRuns, rows: np.ndarray, kind: str
    ) -> np.ndarray:
        compute = runs.log_compute[rows]
        if "slope" in fits[name]:
            return Sigmoid.from_state(fits[name]).evaluate(compute)
        return PowerSum.from_state(fits[name]).evaluate(compute[:, None])
