"""Probabilities and quantiles of conformal scores: by hand, and against the distribution that made the scores."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from perfcast.uncertainty.conformal import (
    ConformalCalibration,
    UncertaintyModel,
    joint_bounds,
    outputs_of,
    probability_at_least,
    weighted_quantile,
)
from perfcast.uncertainty.in_domain import InDomainModel
from perfcast.uncertainty.mixture import mixture_quantiles

LEVELS = np.linspace(0, 1, 201)
SCORES = norm.ppf((1 + np.minimum(LEVELS, 0.9999)) / 2)
"""Sizes of errors of a standard normal distribution."""


@pytest.mark.parametrize("sigma", [0.05, 0.3])
@pytest.mark.parametrize("ratio", [0.5, 0.8, 0.95, 1.0, 1.05, 1.3, 2.0])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_probability_of_a_threshold_is_that_of_the_errors(sigma, ratio, level):
    median = 120.0
    high = median * np.exp(sigma * norm.ppf((1 + level) / 2))
    probability = probability_at_least(median * ratio, median, high, level, SCORES)
    assert probability == pytest.approx(norm.cdf(-np.log(ratio) / sigma), abs=0.006)
    other = probability_at_least(median / ratio, median, high, level, SCORES)
    assert probability + other == pytest.approx(1), "symmetric about the median"


def test_no_threshold_is_certain_or_impossible():
    for ratio, bound in ((1e-6, 0.9975), (1e6, 0.0025)):
        assert probability_at_least(100 * ratio, 100, 130, 0.9, SCORES) == pytest.approx(bound)


def test_scores_of_nothing_leave_a_step():
    scores = np.append(np.zeros(10), 1.0)
    assert probability_at_least(100, 100, 130, 0.95, scores) == 0.5
    assert probability_at_least(99, 100, 130, 0.95, scores) == pytest.approx(0.5 + 0.5 * 0.9)


def test_thresholds_nearer_than_every_error_are_a_toss():
    """No backtest erred less than half of the expected error."""
    scores = np.linspace(0.5, 1.5, 11)
    high = 100 * np.exp(0.1 * 1.4)
    for score, share in ((0.0, 0), (0.25, 0), (0.5, 0), (0.75, 0.25), (1.0, 0.5), (1.4, 0.9), (3.0, 0.9)):
        above, below = (
            probability_at_least(100 * np.exp(sign * 0.1 * score), 100, high, 0.9, scores) for sign in (1, -1)
        )
        assert (above, below) == pytest.approx((0.5 - share / 2, 0.5 + share / 2))


def test_levels_rise_from_zero_to_those_of_repeated_errors():
    """Three of eleven levels have the least error, so errors of half its size have half of their level."""
    scores = np.array([0.5, 0.5, 0.5, *np.linspace(0.6, 1.3, 8)])
    high = 100 * np.exp(0.1 * np.interp(0.9, np.linspace(0, 1, 11), scores))
    assert probability_at_least(100 * np.exp(-0.1 * 0.25), 100, high, 0.9, scores) == pytest.approx(0.5 + 0.1 / 2)
    assert probability_at_least(100 * np.exp(-0.1 * 0.5), 100, high, 0.9, scores) == pytest.approx(0.5 + 0.2 / 2)


@pytest.mark.parametrize(
    ("probabilities", "bounds"),
    [([], (1, 1)), ([0.3], (0.3, 0.3)), ([0.9, 0.8], (0.7, 0.8)), ([0.5, 0.4, 0.6], (0, 0.4)), ([1, 1, 1], (1, 1))],
)
def test_joint_bounds_are_those_of_frechet(probabilities, bounds):
    assert joint_bounds(probabilities) == pytest.approx(bounds)


def test_quantiles_are_corrected_for_the_new_score_and_weighted():
    scores = np.array([4.0, 1.0, 3.0, 2.0])
    equal = np.ones(4)
    # with four scores and the new one, a level of 0.6 needs three of four
    assert [weighted_quantile(scores, equal, level) for level in (0.0, 0.2, 0.6, 0.61, 0.8, 1.0)] == [1, 1, 3, 4, 4, 4]
    assert weighted_quantile(scores, np.array([1.0, 7.0, 1.0, 1.0]), 0.5) == 1
    assert weighted_quantile(np.array([5.0]), np.array([0.3]), 0.9) == 5


def test_outputs_are_told_apart_by_task_and_target():
    tasks, targets = pd.Series(["a", "a", "b"]), pd.Series(["x", "y", "x"])
    assert len(set(outputs_of(tasks, targets))) == 3
    assert list(outputs_of(tasks, "x")) == list(outputs_of(tasks, pd.Series(["x"] * 3)))
    assert outputs_of(pd.Series(["ab"]), "c")[0] != outputs_of(pd.Series(["a"]), "bc")[0]


def calibrated(rows, backtests=1, spread=3.0):
    """Fit to `rows` residuals of the output "few", of another spread than the 500 of "many"."""
    rng = np.random.default_rng(0)
    residuals = np.append(rng.normal(0, 0.1 * spread, rows), rng.normal(0, 0.1, 500))
    outputs = np.array(["few"] * rows + ["many"] * 500)
    distances = pd.DataFrame({"near": rng.random(len(residuals))})
    return ConformalCalibration().fit(residuals, outputs, np.arange(len(residuals)) % backtests, distances)


def test_an_output_has_quantiles_of_its_own_from_fifty_residuals_on():
    assert set(calibrated(49).quantiles) == {"", "many"}
    assert set(calibrated(50).quantiles) == {"", "few", "many"}


def test_with_several_backtests_quantiles_are_shrunk_by_their_number():
    single, two, four = (calibrated(400, count, 0.1).quantiles for count in (1, 2, 4))
    assert single["few"][180] < four["few"][180] < two["few"][180] < two[""][180]
    assert all(len(values) == 201 for values in four.values())


def test_a_distance_that_does_not_change_the_printed_score_is_not_named():
    calibration = ConformalCalibration.from_state(
        {"base": 0.1, "weights": {"a": 0.1, "b": 0.0}, "quantiles": {"": np.linspace(0, 1, 201).tolist()}, "most": 1.0}
    )
    distances = pd.DataFrame({"a": [0.0049, 0.0051, 1.0], "b": [9.0, 9.0, 9.0]})
    assert calibration.least_similar_group(distances).tolist() == ["", "a", "a"]
    assert calibration.in_domain_score(distances)[2] == pytest.approx(0.5)


def test_factors_of_levels_survive_their_folder(tmp_path):
    in_domain = InDomainModel().fit(pd.DataFrame({"size": [1.0, 2.0]}), [])
    for scales in ((), (1.5, 1.0, 2.25)):
        folder = tmp_path / str(len(scales))
        folder.mkdir()
        UncertaintyModel(in_domain, calibrated(60), scales=scales).save(folder)
        assert UncertaintyModel.load(folder).scales == scales
        assert (folder / "scales.json").exists() == bool(scales)


def test_mixtures_know_scores_by_output():
    ends = mixture_quantiles(
        np.zeros(2), np.array([0, 1]), np.ones(2),
        errors=np.array([0.1, 0.1]), outputs=np.array(["a", "other"]),
        scores={"": [0.0, 1.0], "a": [0.0, 3.0]}, levels=(0.25, 0.75),
    )  # fmt: skip
    assert ends[0] == pytest.approx([-0.15, 0.15], abs=1e-6)
    assert ends[1] == pytest.approx([-0.05, 0.05], abs=1e-6)
