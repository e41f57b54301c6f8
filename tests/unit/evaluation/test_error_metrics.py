import numpy as np
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


def test_r2_raw_is_independent_of_the_unit():
    small, large = (values_of(scored(np.array([1, 2, 4]) * unit, np.array([2, 2, 3]) * unit)) for unit in (1e-9, 1e9))
    assert small["r2_raw"] == pytest.approx(large["r2_raw"])
    assert np.isnan(values_of(scored([5, 5], [4, 6]))["r2_raw"])


def test_perfect_and_reversed_predictions():
    perfect, reverse = values_of(scored([1, 2, 3], [1, 2, 3])), values_of(scored([1, 2, 3], [3, 2, 1]))
    assert (perfect["mape"], perfect["r2"], perfect["pairs"]) == (0, 1, 1)
    assert (reverse["spearman"], reverse["pairs"]) == (pytest.approx(-1), 0)


def test_score_separates_targets_of_different_scales():
    values = values_of(scored([1, 2, 1000, 2000], [2, 1, 2000, 1000], target=[0, 0, 1, 1]))
    assert values["pairs"] == 0
    assert values["spearman"] == pytest.approx(-1)
    assert values["r2"] < 0


def test_r2_and_ranks_of_equal_scores_are_undefined():
    values = values_of(scored([5, 5, 5], [4, 5, 6]))
    assert np.isnan([values["r2"], values["spearman"], values["pairs"]]).all()


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=25))
@settings(max_examples=150, deadline=None)
def test_ordered_pairs_matches_counting_every_pair(points):
    x, y = np.array(points, dtype=float).T
    counted = correct = 0.0
    for i in range(len(x)):
        for j in range(i):
            if x[i] != x[j]:
                counted += 1
                product = (x[i] - x[j]) * (y[i] - y[j])
                correct += 1 if product > 0 else 0.5 if product == 0 else 0
    share, influence = ordered_pairs(x, y)
    assert influence.sum() == pytest.approx(0, abs=1e-9)
    assert np.isnan(share) if counted == 0 else share == pytest.approx(correct / counted)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=3, max_size=30))
@settings(max_examples=100, deadline=None)
def test_spearman_matches_scipy(points):
    x, y = np.array(points, dtype=float).T
    value, influence = spearman(x, y)
    assert influence.sum() == pytest.approx(0, abs=1e-9)
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert value == pytest.approx(spearmanr(x, y).statistic)
    else:
        assert np.isnan(value)


@pytest.mark.parametrize("statistic", [spearman, ordered_pairs])
def test_first_order_draws_of_rank_metrics_match_exact_draws(statistic):
    random = np.random.default_rng(0)
    x = random.normal(size=400)
    y = x + random.normal(size=400)
    value, influence = statistic(x, y)
    exact, linear = [], []
    for _ in range(300):
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
    for _ in range(200):
        cluster = np.repeat(np.arange(60), 5)
        size = 0.1 * np.abs(random.normal(size=60))[cluster]
        sample = scored(np.ones(300), 1 + size, cluster=cluster)
        draws = score(sample, draw_weights(60, 200, seed=int(random.integers(1_000_000))))[1]
        truth = {"mape": 10 * np.sqrt(2 / np.pi), "medape": 6.745}
        for metric in covered:
            low, high = percentile_interval(draws[metric], 60)
            covered[metric] += low <= truth[metric] <= high
    assert 0.88 <= covered["mape"] / 200 <= 0.99
    assert 0.88 <= covered["medape"] / 200 <= 0.99


def test_percentile_interval_of_one_cluster_is_nan():
    sample = scored([1, 2, 3], [1, 2, 4], cluster=[0, 0, 0])
    draws = score(sample, draw_weights(1, 50, seed=0))[1]
    assert np.isnan(percentile_interval(draws["mape"], 1)).all()


def test_percentile_interval_tolerates_few_empty_resamples():
    draws = np.array([1.0] * 90 + [np.nan] * 10)
    assert np.isnan(percentile_interval(draws, 5)).all()
    assert percentile_interval(np.array([1.0] * 99 + [np.nan]), 5) == (1.0, 1.0)


def test_draw_weights_is_seeded_and_sums_to_the_clusters():
    weights = draw_weights(30, 100, seed=2)
    assert (weights.sum(axis=1) == 30).all()
    assert np.array_equal(weights, draw_weights(30, 100, seed=2))
    assert not np.array_equal(weights, draw_weights(30, 100, seed=3))


def test_mean_of_finite_ignores_nan():
    assert mean_of_finite(np.array([1.0, np.nan, 3.0])) == 2.0
    assert np.isnan(mean_of_finite(np.array([np.nan, np.nan])))


def test_coverage_and_width_of_intervals():
    half = np.log([1.1, 1.1, 1.3, 1.0])
    values, draws = score(scored([100, 100, 100, 100], [105, 120, 80, 100], half=half), draw_weights(4, 50, 0))
    assert values["coverage"] == pytest.approx(75.0)
    assert values["width"] == pytest.approx(100 * (1.1 - 1 / 1.1))
    outside = [0.0, np.log(1.2 / 1.1), 0.0, 0.0]
    assert values["interval_score"] == pytest.approx(100 * np.mean(2 * half + 20 * np.array(outside)))
    assert np.nanmin(draws["width"]) == 0 and np.nanmax(draws["width"]) <= 100 * (1.3 - 1 / 1.3)
    assert np.nanmin(draws["coverage"]) >= 0 and np.nanmax(draws["coverage"]) <= 100


def test_coverage_without_intervals_is_nan():
    values, draws = score(scored([1, 2], [1, 2], half=[0.1, np.nan]), draw_weights(2, 20, 0))
    assert np.isnan(values["coverage"]) and np.isnan(values["width"]) and np.isnan(values["interval_score"])
    assert np.isnan(draws["coverage"]).all()
