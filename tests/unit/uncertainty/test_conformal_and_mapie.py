"""Calibrated intervals beside those of MAPIE, an independent library of conformal prediction."""

import numpy as np
import pandas as pd
import pytest
from mapie.regression import SplitConformalRegressor
from sklearn.dummy import DummyRegressor

from perfcast.uncertainty.conformal import ConformalCalibration, weighted_quantile

LEVEL = 0.9


def mapie_interval(residuals, **options):
    """Split conformal interval about a prediction of 0, with absolute residuals as scores."""
    nothing = np.zeros((len(residuals), 1))
    zero = DummyRegressor(strategy="constant", constant=0.0).fit(nothing, residuals)
    regressor = SplitConformalRegressor(zero, confidence_level=LEVEL, conformity_score="absolute", prefit=True)
    return regressor.conformalize(nothing, residuals).predict_interval(nothing[:1], **options)[1][0, :, 0]


def own_half_width(residuals):
    """Half-width of one output, one backtest and independent rows that are all at distance 0."""
    count, nowhere = len(residuals), pd.DataFrame({"processor": np.zeros(len(residuals))})
    calibration = ConformalCalibration().fit(residuals, np.full(count, "t"), np.zeros(count, int), nowhere)
    return calibration.half_widths(np.array(["t"]), nowhere[:1], LEVEL)[0]


@pytest.mark.parametrize("count", [9, 19, 100])
def test_without_distances_an_interval_is_that_of_mapie(count):
    residuals = np.random.default_rng(count).standard_t(3, count) * 0.05
    half_width = own_half_width(residuals)
    ends = mapie_interval(residuals, allow_infinite_bounds=count == 9)
    assert ends == pytest.approx([-half_width, half_width], abs=1e-9)
    assert weighted_quantile(np.abs(residuals), np.ones(count), LEVEL) == pytest.approx(half_width, abs=1e-9)


def test_fewer_scores_than_a_level_needs_end_at_the_largest_where_mapie_refuses():
    residuals = np.random.default_rng(0).normal(0, 0.05, 8)
    with pytest.raises(ValueError, match="too low"):
        mapie_interval(residuals, allow_infinite_bounds=True)
    assert own_half_width(residuals) == pytest.approx(np.abs(residuals).max(), abs=1e-9)
