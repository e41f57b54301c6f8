"""Laws in compute alone: a sigmoid of its logarithm for accuracies, a power for losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfcast.domains.scaling.predictors.law_fit import PowerSum, fit_power_sums
from perfcast.domains.scaling.predictors.scaling_law import LawState, RunGroup, ScalingLawPredictor
from perfcast.domains.scaling.predictors.sigmoid_fit import SharesOfRuns, Sigmoid, fit_sigmoids
from perfcast.domains.scaling.predictors.trained_runs import ACCURACY, TrainedRuns


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

    def _fit_laws(self, runs: TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]) -> list[LawState]:
        compute = runs.log_compute
        is_share = [group.kind == ACCURACY for group in groups]
        tasks = [
            SharesOfRuns(compute[rows], values[rows], self.floor_share * float(np.median(runs.chance[rows])))
            for (rows, _), chosen in zip(groups, is_share, strict=True)
            if chosen
        ]
        losses = [
            (compute[rows][:, None], values[rows])
            for (rows, _), chosen in zip(groups, is_share, strict=True)
            if not chosen
        ]
        sigmoids, powers = iter(fit_sigmoids(tasks, rising=True)), iter(fit_power_sums(losses))
        return [(next(sigmoids) if chosen else next(powers)).to_state() for chosen in is_share]

    def _evaluate(
        self, fits: dict[str, LawState], name: str, runs: TrainedRuns, rows: np.ndarray, kind: str
    ) -> np.ndarray:
        compute = runs.log_compute[rows]
        if "slope" in fits[name]:
            return Sigmoid.from_state(fits[name]).evaluate(compute)
        return PowerSum.from_state(fits[name]).evaluate(compute[:, None])
