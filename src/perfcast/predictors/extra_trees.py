"""Extremely randomised trees on log targets."""

from __future__ import annotations

from typing import Any

from perfcast.predictors._forest import ForestPredictor


class ExtraTreesPredictor(ForestPredictor):
    """The mean of many deep trees whose thresholds are drawn at random, one per feature looked at.

    Every split takes the best of `feature_fraction` of the features, each cut at one random threshold, so a forecast
    is smoother in its inputs than a random forest's.
    Source: Geurts, Ernst and Wehenkel, 2006, Machine Learning 63(1).
    """

    def _grower(self, **settings: Any) -> Any:
        from sklearn.ensemble import ExtraTreesRegressor

        return ExtraTreesRegressor(**settings)
