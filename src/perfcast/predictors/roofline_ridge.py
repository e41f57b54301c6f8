"""`roofline_ridge`: the roofline law, and ridge regression on what it leaves."""

from __future__ import annotations

from perfcast.predictors._roofline_residual import RooflineResidualPredictor
from perfcast.predictors.base import Predictor
from perfcast.predictors.linear import Ridge


class RooflineRidgePredictor(RooflineResidualPredictor):
    """The roofline law, corrected by a linear model of the columns: the plain form of `roofline_attention`."""

    def __init__(self, *, alpha: float = 1e-2, min_count: int = 2, clip: float = 0.25) -> None:
        self.alpha, self.min_count, self.clip = alpha, min_count, clip

    def _learner(self) -> Predictor:
        return Ridge(default_alpha=self.alpha, min_count=self.min_count, clip=self.clip)
