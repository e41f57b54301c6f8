"""Random forests on log targets."""

from __future__ import annotations

from sklearn.ensemble import RandomForestRegressor

from perfcast.predictors._forest import ForestPredictor


class RandomForestPredictor(ForestPredictor):
    """The mean of many deep trees whose every split is the best one among a random share of the features.

    Source: Breiman, 2001, Machine Learning 45(1).
    """

    _grower = RandomForestRegressor
