"""What the laws leave: a learner counts as much as a backtest says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from law_machines import COLUMNS, dates, machines, scores

from perfcast.predictors.hybrid.residual_stacking import FAR, HybridPredictor
from perfcast.predictors.hybrid.server_hybrids import HybridTreesPredictor
from perfcast.predictors.predictor import Predictor


class Oracle(Predictor):
    """Knows that machines with one socket are `gain` above the laws, and nothing else."""

    def __init__(self, gain=0.2):
        self.gain = gain

    def _fit(self, X, log_y, validation):
        self.seen = log_y

    def _predict(self, X):
        return np.where(X[["base_mhz"]].to_numpy() == 2000.0, self.gain, 0.0)

    def _save(self, folder): ...

    def _load(self, folder): ...


class Corrected(HybridPredictor):
    announced, backtest_weights = True, True

    def __init__(self, gain=0.2):
        self.gain = gain

    def _learners(self):
        return {"oracle": Oracle(self.gain)}


def surprising(frame: pd.DataFrame, gain: float) -> pd.DataFrame:
    """Return scores that lie above every law for valid machines of one clock."""
    late = np.arange(len(frame)) >= 500
    factor = np.where(late & (frame["base_mhz"] == 2000.0), np.exp(gain), 1.0)
    return scores(frame).mul(factor, axis=0)


def fit(predictor: Predictor, y: pd.DataFrame, train: pd.DataFrame) -> Predictor:
    validation = np.arange(len(train)) >= 500
    return predictor.fit(train, y, columns=COLUMNS, validation=validation, when=dates(len(train), "2022-12-31"))


@pytest.mark.parametrize(("gain", "weight"), [(0.2, 1.0), (0.1, 0.5), (0.0, 0.0), (-0.2, 0.0)])
def test_a_learner_counts_as_much_as_the_backtest_says(gain, weight):
    train = machines()
    assert fit(Corrected(), surprising(train, gain), train).weights_["any"]["oracle"] == pytest.approx(weight, abs=0.1)


def test_a_learner_without_weight_does_not_touch_the_forecast():
    train = machines()
    y = surprising(train, 0.0)
    with_it, other = fit(Corrected(0.2), y, train), fit(Corrected(5.0), y, train)
    pd.testing.assert_frame_equal(with_it.predict(train), other.predict(train))


def test_learners_see_residuals_and_no_wild_ones():
    train = machines()
    y = scores(train)
    y.iloc[3] *= 50
    seen = fit(Corrected(), y, train).learners_["oracle"].seen
    assert seen.max() == pytest.approx(FAR)
    assert np.median(np.abs(seen)) < 0.05


def test_without_valid_rows_the_laws_count_the_same():
    train = machines()
    fitted = Corrected().fit(train, scores(train), columns=COLUMNS)
    assert fitted.weights_["any"] == {"oracle": 1.0}


def test_trees_repeat_what_a_law_cannot_say():
    train = machines(1500)
    rows = np.arange(len(train))
    y = scores(train).mul(np.where((train["tdp_w"] == 96) & (train["base_mhz"] == 2400), 0.9, 1.1), axis=0)
    validation = rows >= 1300
    when = dates(len(train), "2022-12-31")
    fitted = HybridTreesPredictor(trees=20).fit(train, y, columns=COLUMNS, validation=validation, when=when)
    laws = np.sqrt(fitted.laws_["analytical"].predict(train) * fitted.laws_["analytical_time"].predict(train))
    errors = [
        np.abs(forecast / y.to_numpy() - 1).mean() for forecast in (laws.to_numpy(), fitted.predict(train).to_numpy())
    ]
    assert errors[1] < errors[0] / 2
