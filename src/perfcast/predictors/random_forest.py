"""Random forests on log targets."""

from __future__ import annotations

from typing import Any

from perfcast.predictors._forest import ForestPredictor


class RandomForestPredictor(ForestPredictor):
    """The mean of many deep trees whose every split is the best one among a random share of the features.

    Source: Breiman, 2001, Machine Learning 45(1).
    """

    def _grower(self, **settings: Any) -> Any:
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(**settings)
