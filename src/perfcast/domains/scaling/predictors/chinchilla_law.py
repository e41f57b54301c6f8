"""Laws of the final loss in parameters and tokens: with two exponents, or with one that both share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from perfcast.domains.scaling.predictors.scaling_law import (
    LawState,
    RunGroup,
    ScalingLawPredictor,
    evaluate_power_sum,
    fit_values,
)
from perfcast.domains.scaling.predictors.trained_runs import TrainedRuns


@dataclass(kw_only=True, eq=False, repr=False)
class ChinchillaLawPredictor(ScalingLawPredictor):
    """L = E + A / N^a + B / D^b, and the same for the error rate of an accuracy.

    N are parameters, D tokens; all of E, A, B, a and b are at least 0. See `law_fit` for the fit.
    Source: Hoffmann et al., Training Compute-Optimal Large Language Models, 2022, arXiv 2203.15556; fit after Besiroglu
    et al., 2024, arXiv 2404.10102.
    """

    tied: ClassVar[bool] = False

    def _fit_laws(self, runs: TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]) -> list[LawState]:
        return [power_sum.to_state() for power_sum in fit_values(runs, values, groups, tied=self.tied)]

    def _evaluate(
        self, fits: dict[str, LawState], name: str, runs: TrainedRuns, rows: np.ndarray, kind: str
    ) -> np.ndarray:
        return evaluate_power_sum(fits[name], runs.logs[rows], kind)


@dataclass(kw_only=True, eq=False, repr=False)
class OvertrainingLawPredictor(ChinchillaLawPredictor):
    """L = E + (a M^eta + b M^-eta) C^-eta, and the same for the error rate of an accuracy.

    M = D / N are tokens per parameter, C = 6 N D is the compute. Written in N and D, it is the law
    L = E + A / N^(2 eta) + B / D^(2 eta): curves of equal M are parallel, so over-training shifts a law and keeps its
    slope. It has one parameter less than `chinchilla_law`.
    Source: Gadre et al., Language models scale reliably with over-training and on downstream tasks, 2024,
    arXiv 2403.08540, equation 4.
    """

    tied: ClassVar[bool] = True
