"""Intervals of evaluated rows, and their PIT histogram."""

import numpy as np
import pandas as pd
import pytest

from perfcast.evaluation.interval_metrics import (
    pit_histogram,
    signed_pit,
)
from perfcast.evaluation.run_predictions import (
    HALF_WIDTH,
    interval_scores,
    interval_widths,
    is_covered,
    with_intervals,
)


def make_run(rows=3000, test_bias=0.0, seed=0, backtest_bias=-0.05):
    """A run of two backtests of 2020 and 2021, and test rows of 2022 with their distances."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"row": [f"r{number}" for number in range(3 * rows)], "backtest": np.repeat([-1, 0, 1], rows)})
    frame["task"] = rng.choice(["int", "fp"], len(frame))
    frame["entity"] = [f"cpu {number}" for number in rng.integers(0, 500, len(frame))]
    bias = np.where(frame["backtest"] < 0, test_bias, backtest_bias)
    frame = frame.assign(fold=0, seed=0, target="score", measured=100.0)
    frame["predicted"] = 100 * np.exp(bias + rng.normal(0, 0.1, len(frame)))
    far = pd.DataFrame(
        {"row": frame["row"], "fold": 0, "backtest": frame["backtest"], "processor": rng.random(len(frame))}
    )
    test, backtests = frame[frame["backtest"] < 0].drop(columns="backtest"), frame[frame["backtest"] >= 0]
    return test.reset_index(drop=True), backtests, far


def test_intervals_of_evaluated_rows_have_the_level_of_their_backtests():
    test, backtests, far = make_run(backtest_bias=0.0)
    result = with_intervals(test, backtests, far, 0.9)
    assert is_covered(result).mean() == pytest.approx(0.9, abs=0.03)
    ends = (np.exp(sign * result[HALF_WIDTH]) for sign in (1, -1))
    high, low = ends
    np.testing.assert_allclose(interval_widths(result), 100 * (high - low))
    outside = np.maximum(np.log(low) - np.log(result["measured"] / result["predicted"]), 0)
    outside += np.maximum(np.log(result["measured"] / result["predicted"]) - np.log(high), 0)
    np.testing.assert_allclose(interval_scores(result, 0.9), 200 * result[HALF_WIDTH] + 2000 * outside)


def test_pit_is_uniform_for_errors_like_those_of_backtests_and_shows_a_bias():
    same, biased = (with_intervals(*make_run(test_bias=bias, backtest_bias=0.0), 0.9) for bias in (0.0, 0.1))
    histogram = pit_histogram(same)
    assert histogram.groupby("task")["share"].sum().to_numpy() == pytest.approx(1)
    assert histogram["share"].between(0.05, 0.15).all()
    # predictions are higher than measured scores: these are low in their predictive distribution
    assert np.nanmean(signed_pit(biased)) < 0.3
    assert pit_histogram(same.assign(pit=np.nan)).empty
