"""PIT histogram, worst-slab coverage, and the martingale against exchangeability."""

import numpy as np
import pandas as pd
import pytest

from perfcast.evaluation.interval_metrics import (
    ALARM,
    bet_on_exchangeability,
    calibration_checks,
    pit_histogram,
    signed_pit,
    worst_slab_coverage,
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
    months = pd.to_datetime(frame["backtest"].map({-1: "2022-01", 0: "2020-01", 1: "2021-01"}))
    months += pd.to_timedelta(np.tile(np.arange(rows) % 300, 3), unit="D")
    far = pd.DataFrame(
        {"row": frame["row"], "fold": 0, "backtest": frame["backtest"], "processor": rng.random(len(frame))}
    )
    test, backtests = frame[frame["backtest"] < 0].drop(columns="backtest"), frame[frame["backtest"] >= 0]
    return test.reset_index(drop=True), backtests, far, months


def test_intervals_of_evaluated_rows_have_the_level_of_their_backtests():
    test, backtests, far, _ = make_run(backtest_bias=0.0)
    result = with_intervals(test, backtests, far, 0.9)
    assert is_covered(result).mean() == pytest.approx(0.9, abs=0.03)
    ends = (np.exp(sign * result[HALF_WIDTH]) for sign in (1, -1))
    high, low = ends
    np.testing.assert_allclose(interval_widths(result), 100 * (high - low))
    outside = np.maximum(np.log(low) - np.log(result["measured"] / result["predicted"]), 0)
    outside += np.maximum(np.log(result["measured"] / result["predicted"]) - np.log(high), 0)
    np.testing.assert_allclose(interval_scores(result, 0.9), 200 * result[HALF_WIDTH] + 2000 * outside)


def test_pit_is_uniform_for_errors_like_those_of_backtests_and_shows_a_bias():
    same, biased = (with_intervals(*make_run(test_bias=bias, backtest_bias=0.0)[:3], 0.9) for bias in (0.0, 0.1))
    histogram = pit_histogram(same)
    assert histogram.groupby("task")["share"].sum().to_numpy() == pytest.approx(1)
    assert histogram["share"].between(0.05, 0.15).all()
    # predictions are higher than measured scores: these are low in their predictive distribution
    assert np.nanmean(signed_pit(biased)) < 0.3
    assert pit_histogram(same.assign(pit=np.nan)).empty


def test_worst_slab_is_the_part_of_the_space_that_intervals_miss():
    rng = np.random.default_rng(0)
    distances = rng.random((4000, 3))
    inside = (rng.random(4000) < 0.9).astype(float)
    assert worst_slab_coverage(inside, distances) == pytest.approx(0.9, abs=0.05)
    inside[distances[:, 1] > 0.7] = rng.random((distances[:, 1] > 0.7).sum()) < 0.5
    assert worst_slab_coverage(inside, distances) == pytest.approx(0.5, abs=0.08)
    assert worst_slab_coverage(inside, np.zeros((4000, 2))) == inside.mean()
    assert np.isnan(worst_slab_coverage(inside[:10], distances[:10]))


def test_martingale_stays_small_for_exchangeable_scores_and_grows_after_a_change():
    rng = np.random.default_rng(1)
    large = [
        bet_on_exchangeability(rng.random(300), rng.random(400), seed).max() > np.log10(ALARM) for seed in range(100)
    ]
    assert sum(large) <= 5
    assert bet_on_exchangeability(np.zeros(50), np.zeros(100)).max() < 1
    changed = bet_on_exchangeability(rng.random(300), np.concatenate([rng.random(100), 0.6 + rng.random(300)]))
    assert changed.max() > 4
    assert 100 < np.argmax(changed > np.log10(ALARM)) < 250
    smaller = bet_on_exchangeability(rng.random(300), 0.4 * rng.random(300))
    assert smaller.max() > np.log10(ALARM)


def test_checks_of_a_forward_split_name_the_month_of_the_alarm():
    for bias, alarm in ((-0.05, False), (0.4, True)):
        test, backtests, far, months = make_run(test_bias=bias)
        result = with_intervals(test, backtests, far, 0.9)
        (line,) = calibration_checks(result, backtests, far.assign(month=months)).to_dict("records")
        assert bool(line["alarm"]) == (line["log10_martingale"] > 2) == alarm
        assert line["alarm"][:4] in ("", "2022")
        assert line["worst_slab_coverage"] == pytest.approx(100 * is_covered(result).mean(), abs=8)


def test_checks_test_exchangeability_only_where_all_test_rows_are_later():
    test, backtests, far, months = make_run(200)
    result = with_intervals(test, backtests, far, 0.9)
    mixed = months.where(far["backtest"] >= 0, pd.Timestamp("2020-03"))
    (line,) = calibration_checks(result, backtests, far.assign(month=mixed)).to_dict("records")
    assert np.isnan(line["log10_martingale"])
    assert line["observations"] == 0
    assert calibration_checks(result, None, None).empty
