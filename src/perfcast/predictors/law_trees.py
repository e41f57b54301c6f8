"""`law_trees`: the laws, and extremely randomised trees on what they leave."""

from __future__ import annotations

from perfcast.predictors._law_residual import LawResidualPredictor
from perfcast.predictors.base import Predictor
from perfcast.predictors.trees import ExtraTrees


class LawTreesPredictor(LawResidualPredictor):
    """The mean of the laws with weights from a rehearsal, corrected by extremely randomised trees."""

    def __init__(
        self,
        *,
        trees: int = 100,
        feature_fraction: float = 0.3,
        leaf_rows: int = 2,
        announced: bool = True,
        rehearsed: bool = True,
        random_state: int = 0,
    ) -> None:
        self.announced, self.rehearsed = announced, rehearsed
        self.trees = trees
        self.feature_fraction = feature_fraction
        self.leaf_rows = leaf_rows
        self.random_state = random_state

    def _learners(self) -> dict[str, Predictor]:
        trees = ExtraTrees(
            n_estimators=self.trees,
            max_features=self.feature_fraction,
            min_samples_leaf=self.leaf_rows,
            random_state=self.random_state,
        )
        return {"extra_trees": trees}
