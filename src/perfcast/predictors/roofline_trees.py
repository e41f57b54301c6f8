"""`roofline_trees`: the roofline law, and extremely randomised trees on what it leaves."""

from __future__ import annotations

from perfcast.predictors._roofline_residual import RooflineResidualPredictor
from perfcast.predictors.base import Predictor
from perfcast.predictors.trees import ExtraTrees


class RooflineTreesPredictor(RooflineResidualPredictor):
    """The roofline law, corrected by extremely randomised trees."""

    def __init__(
        self, *, trees: int = 100, feature_fraction: float = 0.5, leaf_rows: int = 1, random_state: int = 0
    ) -> None:
        self.trees, self.feature_fraction, self.leaf_rows = trees, feature_fraction, leaf_rows
        self.random_state = random_state

    def _learner(self) -> Predictor:
        return ExtraTrees(
            n_estimators=self.trees,
            max_features=self.feature_fraction,
            min_samples_leaf=self.leaf_rows,
            random_state=self.random_state,
        )
