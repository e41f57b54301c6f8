"""Mean of ridge regression and of the remaining gain, for runs under way."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.domains.scaling.predictors.training_curves import RemainingGainPredictor
from perfcast.predictors.linear import Ridge
from perfcast.predictors.log_mean import LogMeanPredictor
from perfcast.predictors.predictor import Predictor

_ALPHAS = (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0)
"""Penalties that the ridge regression chooses from."""


@dataclass(kw_only=True, eq=False, repr=False)
class CurveEnsemblePredictor(LogMeanPredictor):
    """ln y = mean of ln y_m over `ridge` and `remaining_gain`, with equal weights.

    Early in a run size and length tell more than its noisy results, later the results do. The mean has the smallest
    error on the backtests of a quarter of a run, for accuracies and losses together.
    """

    default_alpha: float = 0.001

    def _new_members(self) -> dict[str, Predictor]:
        return {
            "ridge": Ridge(alphas=_ALPHAS, default_alpha=self.default_alpha),
            "remaining_gain": RemainingGainPredictor(),
        }
