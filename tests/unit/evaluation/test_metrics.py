"""Metrics by hand and against scipy, their resampled intervals, and intervals of evaluated rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from perfcast.evaluation.error_metrics import (
    Scored,
    draw_weights,
    mean_of_finite,
    ordered_pairs,
    percentile_interval,
    score,
    spearman,
)
from perfcast.evaluation.run_predictions import (
    HALF_WIDTH,
    interval_scores,
    interval_widths,
    is_covered,
    pit_histogram,
    signed_pit,
    with_intervals,
)


def scored(measured, predicted, target=None, cluster=None, half=None):
    size = len(measured)
    return Scored(
        np.asarray(measured, dtype=float),
        np.asarray(predicted, dtype=float),
        np.zeros(size, dtype=int) if target is None else np.asarray(target),
        np.arange(size) if cluster is None else np.asarray(cluster),
        np.full(size, np.nan) if half is None else np.asarray(half, dtype=float),
        0.9,
    )


def values_of(sample):
    return score(sample, np.ones((1, int(sample.cluster.max()) + 1), dtype=np.int32))[0]


def test_score_matches_values_computed_by_hand():
    values = values_of(scored([10, 100, 50, 20], [11, 90, 50, 30]))
    assert values["mape"] == pytest.approx((10 + 10 + 0 + 50) / 4)
    assert values["medape"] == pytest.approx(10)
    assert values["p90"] == pytest.approx(10 + 0.7 * 40)
    logs = np.log([10, 100, 50, 20])
    residual = np.log([1.1, 0.9, 1.0, 1.5])
    assert values["r2"] == pytest.approx(1 - (residual**2).sum() / ((logs - logs.mean()) ** 2).sum())
    measured, missed = np.array([10, 100, 50, 20]), np.array([1, -10, 0, 10])
    assert values["r2_raw"] == pytest.approx(1 - (missed**2).sum() / ((measured - measured.mean()) ** 2).sum())
    assert values["spearman"] == pytest.approx(1.0)
    assert values["pairs"] == pytest.approx(1.0)


def test_predictions_that_only_rounding_tells_apart_are_ties_in_rank_metrics():
    rounded = 10 * (1 + 1e-13 * np.random.default_rng(0).normal(size=5))
    apart, equal = (
        values_of(scored([5, 6, 7, 8, 9, 10], [*rounded, 20])),
        values_of(scored([5, 6, 7, 8, 9, 10], [*[10] * 5, 20])),
    )
    assert {name: apart[name] for name in ("spearman", "pairs")} == {
        name: equal[name] for name in ("spearman", "pairs")
    }


def test_r2_raw_is_independent_of_the_unit_and_targets_of_different_scales_are_apart():
    small, large = (values_of(scored(np.array([1, 2, 4]) * unit, np.array([2, 2, 3]) * unit)) for unit in (1e-9, 1e9))
    assert small["r2_raw"] == pytest.approx(large["r2_raw"])
    reversed_ = values_of(scored([1, 2, 1000, 2000], [2, 1, 2000, 1000], target=[0, 0, 1, 1]))
    assert (reversed_["pairs"], reversed_["spearman"]) == (0, pytest.approx(-1))
    assert reversed_["r2"] < 0
    equal = values_of(scored([5, 5, 5], [4, 5, 6]))
    assert np.isnan([equal[name] for name in ("r2", "r2_raw", "spearman", "pairs")]).all()


@given(st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=2, max_size=25))
@settings(max_examples=150, deadline=None)
def test_ranks_match_scipy_and_counting_every_pair(points):
    x, y = np.array(points, dtype=float).T
    pairs = [(x[i] - x[j]) * (y[i] - y[j]) for i in range(len(x)) for j in range(i) if x[i] != x[j]]
    share, influence = ordered_pairs(x, y)
    correlation, other_influence = spearman(x, y)
    assert (influence.sum(), other_influence.sum()) == pytest.approx((0, 0), abs=1e-9)
    assert share == pytest.approx(np.mean((np.sign(pairs) + 1) / 2) if pairs else np.nan, nan_ok=True)
    is_ranked = len(set(x)) > 1 and len(set(y)) > 1
    assert correlation == pytest.approx(spearmanr(x, y).statistic if is_ranked else np.nan, nan_ok=True)


@pytest.mark.parametrize("statistic", [spearman, ordered_pairs])
def test_first_order_draws_of_rank_metrics_match_exact_draws(statistic):
    random = np.random.default_rng(0)
    x = random.normal(size=400)
    y = x + random.normal(size=400)
    value, influence = statistic(x, y)
    exact, linear = [], []
    for _ in range(200):
        index = random.integers(0, 400, 400)
        exact.append(statistic(x[index], y[index])[0])
        linear.append(value + influence[index].mean())
    assert np.corrcoef(exact, linear)[0, 1] > 0.98
    assert np.std(linear) == pytest.approx(np.std(exact), rel=0.1)


def test_draws_equal_metrics_of_resampled_rows():
    random = np.random.default_rng(1)
    measured = random.lognormal(size=60)
    sample = scored(measured, measured * random.lognormal(0, 0.2, 60), cluster=random.integers(0, 7, 60))
    weights = draw_weights(7, 20, seed=3)
    draws = score(sample, weights)[1]
    for number, weight in enumerate(weights):
        index = np.repeat(np.arange(60), weight[sample.cluster])
        again = values_of(scored(sample.measured[index], sample.predicted[index]))
        assert draws["mape"][number] == pytest.approx(again["mape"])
        assert draws["r2"][number] == pytest.approx(again["r2"])
        low, high = np.quantile(sample.errors[index], [0.5, 0.9], method="inverted_cdf")
        assert (draws["medape"][number], draws["p90"][number]) == (pytest.approx(low), pytest.approx(high))


def test_percentile_interval_covers_with_clustered_errors():
    random = np.random.default_rng(5)
    covered = {"mape": 0, "medape": 0}
    for _ in range(100):
        cluster = np.repeat(np.arange(60), 5)
        size = 0.1 * np.abs(random.normal(size=60))[cluster]
        sample = scored(np.ones(300), 1 + size, cluster=cluster)
        draws = score(sample, draw_weights(60, 200, seed=int(random.integers(1_000_000))))[1]
        truth = {"mape": 10 * np.sqrt(2 / np.pi), "medape": 6.745}
        for metric in covered:
            low, high = percentile_interval(draws[metric], 60)
            covered[metric] += low <= truth[metric] <= high
    assert all(87 <= count <= 99 for count in covered.values())


def test_percentile_intervals_of_one_cluster_are_nan_and_tolerate_few_empty_resamples():
    sample = scored([1, 2, 3], [1, 2, 4], cluster=[0, 0, 0])
    draws = score(sample, draw_weights(1, 50, seed=0))[1]
    assert np.isnan(percentile_interval(draws["mape"], 1)).all()
    assert np.isnan(percentile_interval(np.array([1.0] * 90 + [np.nan] * 10), 5)).all()
    assert percentile_interval(np.array([1.0] * 99 + [np.nan]), 5) == (1.0, 1.0)
    assert mean_of_finite(np.array([1.0, np.nan, 3.0])) == 2.0 and np.isnan(mean_of_finite(np.array([np.nan])))


def test_coverage_and_width_of_intervals():
    half = np.log([1.1, 1.1, 1.3, 1.0])
    values, draws = score(scored([100, 100, 100, 100], [105, 120, 80, 100], half=half), draw_weights(4, 50, 0))
    assert values["coverage"] == pytest.approx(75.0)
    assert values["width"] == pytest.approx(100 * (1.1 - 1 / 1.1))
    outside = [0.0, np.log(1.2 / 1.1), 0.0, 0.0]
    assert values["interval_score"] == pytest.approx(100 * np.mean(2 * half + 20 * np.array(outside)))
    assert np.nanmin(draws["width"]) == 0 and np.nanmax(draws["width"]) <= 100 * (1.3 - 1 / 1.3)
    assert np.nanmin(draws["coverage"]) >= 0 and np.nanmax(draws["coverage"]) <= 100
    values, draws = score(scored([1, 2], [1, 2], half=[0.1, np.nan]), draw_weights(2, 20, 0))
    assert np.isnan([values[name] for name in ("coverage", "width", "interval_score")]).all()
    assert np.isnan(draws["coverage"]).all()


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
    half = result[HALF_WIDTH]
    np.testing.assert_allclose(interval_widths(result), 100 * (np.exp(half) - np.exp(-half)))
    outside = np.maximum(np.abs(np.log(result["measured"] / result["predicted"])) - half, 0)
    np.testing.assert_allclose(interval_scores(result, 0.9), 200 * result[HALF_WIDTH] + 2000 * outside)


def test_deviations_of_a_predictor_are_the_widths_of_its_intervals_with_and_without_backtests():
    test, backtests, far = make_run()
    result = with_intervals(test.assign(deviation=0.1), backtests, far, 0.9)
    np.testing.assert_allclose(result[HALF_WIDTH], 0.1644854, rtol=1e-6)
    assert is_covered(result).mean() == pytest.approx(0.9, abs=0.02)
    assert pit_histogram(result)["share"].between(0.05, 0.15).all()
    alone = with_intervals(test.assign(deviation=0.1), None, None, 0.9)
    np.testing.assert_allclose(alone[HALF_WIDTH], result[HALF_WIDTH])


def test_pit_is_uniform_for_errors_like_those_of_backtests_and_shows_a_bias():
    same, biased = (with_intervals(*make_run(test_bias=bias, backtest_bias=0.0), 0.9) for bias in (0.0, 0.1))
    histogram = pit_histogram(same)
    assert histogram.groupby("task")["share"].sum().to_numpy() == pytest.approx(1)
    assert histogram["share"].between(0.05, 0.15).all()
    # predictions are higher than measured scores: these are low in their predictive distribution
    assert np.nanmean(signed_pit(biased)) < 0.3
    assert pit_histogram(same.assign(pit=np.nan)).empty
