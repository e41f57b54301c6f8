"""Calibrated half-widths, probabilities of thresholds, and calibrations that are saved."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from perfcast.schema.table import Column, Kind, Role
from perfcast.uncertainty.conformal import (
    HALF_NORMAL,
    ConformalCalibration,
    UncertaintyModel,
    joint_bounds,
    probability_at_least,
    weighted_quantile,
)
from perfcast.uncertainty.in_domain import AHEAD, RESULTS, InDomainModel
from perfcast.utils.errors import UserError


def backtested(rows=4000, seed=0, scale=0.01, slope=0.2):
    """Residuals whose size grows with one of two distances, for two tasks of which the second errs twice as much."""
    rng = np.random.default_rng(seed)
    far = pd.DataFrame({"processor": rng.uniform(0, 1, rows), "memory": rng.uniform(0, 1, rows)})
    tasks = np.where(rng.random(rows) < 0.5, "one", "two")
    size = (scale + slope * far["processor"].to_numpy()) * np.where(tasks == "two", 2, 1)
    return size * rng.normal(size=rows), tasks, np.zeros(rows, dtype=int), far


def fit(residuals, tasks, backtests, far, **options):
    return ConformalCalibration().fit(residuals, np.asarray(tasks), np.asarray(backtests), far, **options)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_half_widths_are_calibrated_near_and_far(level):
    calibration = fit(*backtested(scale=0.04))
    residuals, tasks, _, far = backtested(seed=1, scale=0.04)
    covered = np.abs(residuals) <= calibration.half_widths(tasks, far, level)
    for rows in (tasks == "one", tasks == "two", far["processor"] < 0.3, far["processor"] > 0.7):
        assert covered[rows].mean() == pytest.approx(level, abs=0.05)


def test_farther_rows_have_wider_intervals_and_lower_scores_up_to_twice_the_farthest_backtest():
    calibration = fit(*backtested(slope=2.0))
    rows = pd.DataFrame({"processor": [0.0, 0.5, 1.0, 2.0, 1e3], "memory": 0.0})
    widths, scores = calibration.half_widths(np.array(["two"] * 5), rows), calibration.in_domain_score(rows)
    assert (np.diff(widths[:4]) > 0).all() and widths[4] == pytest.approx(widths[3], rel=0.01)
    assert scores[0] == 1 and (np.diff(scores[:4]) < 0).all() and scores[4] > 0


@given(st.floats(1e-4, 1.0), st.floats(0.0, 1e6), st.integers(0, 2**32 - 1))
def test_no_distance_counts_more_than_twice_that_of_any_backtest(largest, distance, seed):
    """A distance that backtests hardly vary gets a large weight by chance: it must not widen intervals without end."""
    rng = np.random.default_rng(seed)
    far = pd.DataFrame({"results": largest * rng.random(60), "gpu": np.zeros(60)})
    calibration = fit(rng.normal(0, 0.1 + far["results"] / largest), ["a"] * 60, np.zeros(60), far)
    far_rows = pd.DataFrame({"results": [distance, 2 * largest], "gpu": [1.0, 0.0]})
    least, most = calibration.expected_error(far_rows)
    assert least <= most * (1 + 1e-9)
    assert calibration.in_domain_score(far_rows)[0] <= calibration.base / least + 1e-9


def test_few_residuals_are_not_explained_by_distances_that_do_not_matter():
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        far, residuals = pd.DataFrame(rng.random((27, 5)), columns=list("abcde")), rng.normal(0, 0.04, 27)
        shares.append(fit(residuals, ["a"] * 27, np.zeros(27), far).base / np.abs(residuals).mean())
    assert np.median(shares) > 0.6, "0.4 without a penalty of the weights"


def test_backtests_have_equal_weights():
    small, large = backtested(1000, scale=0.018, slope=0), backtested(20_000, scale=0.01, slope=0)
    residuals, tasks = (np.concatenate(parts) for parts in list(zip(small, large, strict=True))[:2])
    far = pd.concat([small[3], large[3]], ignore_index=True)
    apart, pooled = (
        fit(residuals, tasks, np.repeat(numbers, [1000, 20_000]), far).half_widths(np.array(["unseen"]), far.iloc[[0]])
        for numbers in ([0, 1], [0, 0])
    )
    assert apart > 1.2 * pooled


def test_several_backtests_shrink_quantiles_toward_the_pooled_one_and_the_weights_of_distances():
    residuals, tasks, backtests, far = backtested()
    single, double = (fit(residuals, tasks, numbers, far) for numbers in (backtests, np.arange(len(tasks)) % 2))
    once, twice = (each.half_widths(np.array(["one", "two", ""]), far.iloc[[0] * 3]) for each in (single, double))
    assert once[0] < once[2] < once[1]
    assert twice[0] < twice[2] < twice[1]
    assert twice[:2] == pytest.approx((once[:2] + once[2]) / 2, rel=0.06)
    assert 0 < double.weights["processor"] < 0.995 * single.weights["processor"]


def test_quantiles_are_corrected_for_the_number_of_independent_scores():
    """Thirty scores stay thirty however often they are repeated."""
    residuals, tasks, backtests, far = backtested(30)
    times = np.repeat(np.arange(30), 30)
    tasks[:] = "one"
    repeated = (residuals[times], tasks[times], backtests[times], far.iloc[times])
    by_row, by_entity = (fit(*repeated, entities=names) for names in (None, times))
    scores = np.sort(np.abs(residuals) / by_row.expected_error(far))
    # 0.88 * 901 / 900 and 0.88 * 31 / 30 of thirty scores
    assert by_row.quantiles["one"][176] == pytest.approx(scores[26])
    assert by_entity.quantiles["one"][176] == pytest.approx(scores[27])


def calibrated(rows, backtests=1, spread=3.0):
    """Fit to `rows` residuals of the output "few", of another spread than the 500 of "many"."""
    rng = np.random.default_rng(0)
    residuals = np.append(rng.normal(0, 0.1 * spread, rows), rng.normal(0, 0.1, 500))
    distances = pd.DataFrame({"near": rng.random(len(residuals))})
    return fit(residuals, ["few"] * rows + ["many"] * 500, np.arange(len(residuals)) % backtests, distances)


def test_an_output_has_quantiles_of_its_own_from_fifty_residuals_on_else_those_of_its_kind_or_of_all():
    few = calibrated(49)
    assert set(few.quantiles) == {"", "many"} and set(calibrated(50).quantiles) == {"", "few", "many"}
    rare, unseen = few.half_widths(np.array(["few", "never seen"]), pd.DataFrame({"near": [0.5, 0.5]}))
    assert rare == unseen
    single, two, four = (calibrated(400, count, 0.1).quantiles for count in (1, 2, 4))
    assert single["few"][180] < four["few"][180] < two["few"][180] < two[""][180]
    assert all(len(values) == 201 for values in four.values())
    residuals, nowhere = np.repeat([0.01, 0.2], 60), pd.DataFrame({"near": np.zeros(120)})
    outputs, kinds = np.repeat(["small a", "small b", "large"], [30, 30, 60]), np.repeat(["loss", "accuracy"], 60)
    for kinds_of, expected in ((None, [0.2, 0.2]), (kinds, [0.01, 0.2])):
        calibration = fit(residuals, outputs, np.zeros(120), nowhere, kinds=kinds_of)
        np.testing.assert_allclose(calibration.half_widths(np.array(["small a", "large"]), nowhere[:2]), expected)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_any_residuals_give_finite_positive_widths(residuals, level):
    far, tasks = pd.DataFrame({"processor": np.linspace(0, 1, len(residuals))}), np.full(len(residuals), "t")
    widths = fit(np.array(residuals), tasks, np.zeros(len(residuals), int), far).half_widths(tasks, far, level)
    assert np.isfinite(widths).all()
    assert (widths >= 0).all()
    # of the residuals it was fitted to, an interval holds at least its level
    assert (np.abs(residuals) <= widths + 1e-12).mean() >= level - 1e-9


@pytest.mark.parametrize("level", [0, 1, float("nan")])
def test_half_widths_refuse_an_invalid_level_and_a_fit_no_residuals(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        fit(*backtested(100)).half_widths(np.array(["one"]), backtested(1)[3], level)
    with pytest.raises(ValueError, match="needs residuals"):
        fit(np.zeros(0), [], [], pd.DataFrame({"processor": []}))


def test_intervals_name_the_least_similar_group():
    train = pd.DataFrame({"family": ["old"] * 3 + ["new"], "channels": [4.0, 8.0, np.nan, 8.0]})
    columns = [Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor")]
    model = InDomainModel().fit(train, [*columns, Column("channels", Kind.NUMERICAL, Role.FEATURE, "memory")])
    far = pd.DataFrame(np.random.default_rng(0).random((900, len(model.names))), columns=model.names)
    size = 0.01 + 0.2 * far["processor"] + 0.1 * far["memory"]
    residuals = size.to_numpy() * np.random.default_rng(1).normal(size=900)
    calibration = fit(residuals, np.full(900, "t"), np.zeros(900, int), far)
    calibration.weights |= {RESULTS: 0.0, AHEAD: 0.0}
    rows = train.iloc[[0, 0, 0]].assign(family=["old", "third", "old"], channels=[4.0, 4.0, 400.0])
    intervals = UncertaintyModel(model, calibration).intervals(rows, np.full(3, "t"))
    assert intervals["least_similar_group"].tolist() == ["", "processor", "memory"]
    assert intervals["in_domain_score"].iloc[0] == 1
    assert (intervals["in_domain_score"].iloc[1:] < 1).all()
    for side in ("below", "above"):
        assert (intervals[side].iloc[1:] > intervals[side].iloc[0]).all()
    normal = UncertaintyModel(model, calibration).intervals(rows, np.full(3, "t"), deviations=np.full(3, 0.1))
    np.testing.assert_allclose(normal["below"], 0.1644854, rtol=1e-6)
    at_90_percent = np.interp(0.9, np.linspace(0, 1, 201), HALF_NORMAL)
    np.testing.assert_allclose(normal["expected_error"] * at_90_percent, normal["below"])


def test_a_distance_that_does_not_change_the_printed_score_is_not_named():
    calibration = ConformalCalibration.from_state(state(quantiles={"": np.linspace(0, 1, 201).tolist()}, farthest={}))
    distances = pd.DataFrame({"a": [0.0049, 0.0051, 1.0], "b": [9.0, 9.0, 9.0]})
    assert calibration.least_similar_group(distances).tolist() == ["", "a", "a"]
    assert calibration.in_domain_score(distances)[2] == pytest.approx(0.5)


def test_pit_is_the_level_of_the_narrowest_interval_with_the_residual():
    random = np.random.default_rng(5)
    far = pd.DataFrame({"processor": random.random(600)})
    tasks = np.where(np.arange(600) % 2 == 0, "int", "fp")
    residuals = random.normal(0, 0.1, 600) * (1 + far["processor"].to_numpy()) * np.where(tasks == "int", 1, 3)
    calibration = fit(residuals, tasks, np.zeros(600), far)
    levels = calibration.pit(tasks, far, residuals)
    for level in (0.5, 0.8, 0.95):
        inside = np.abs(residuals) <= calibration.half_widths(tasks, far, level)
        # a residual that lies on the edge may fall on either side
        assert (inside != (levels <= level + 1e-9)).sum() <= 2
        assert (levels <= level + 1e-9).mean() == pytest.approx(level, abs=0.02)
    beyond = calibration.pit(np.array(["int", "other"]), far.iloc[:2], np.array([9.0, 0.0]))
    assert beyond.tolist() == [np.inf, 0.0]


SCORES = norm.ppf((1 + np.minimum(np.linspace(0, 1, 201), 0.9999)) / 2)
"""Sizes of errors of a standard normal distribution."""


@pytest.mark.parametrize(("sigma", "level"), [(0.05, 0.9), (0.3, 0.5)])
def test_probability_of_a_threshold_is_that_of_the_errors(sigma, level):
    median = 120.0
    high = median * np.exp(sigma * norm.ppf((1 + level) / 2))
    for ratio in (0.5, 0.8, 0.95, 1.0, 1.05, 1.3, 2.0):
        probability = probability_at_least(median * ratio, median, high, level, SCORES)
        assert probability == pytest.approx(norm.cdf(-np.log(ratio) / sigma), abs=0.006)
        other = probability_at_least(median / ratio, median, high, level, SCORES)
        assert probability + other == pytest.approx(1), "symmetric about the median"


TENTHS = np.linspace(0.5, 1.5, 11)
TIED = np.array([0.5, 0.5, 0.5, *np.linspace(0.6, 1.3, 8)])


@pytest.mark.parametrize(
    ("threshold", "high", "level", "scores", "probability"),
    [
        # no threshold is certain or impossible, and scores of nothing leave a step
        (1e-4, 130, 0.9, SCORES, 0.9975),
        (1e8, 130, 0.9, SCORES, 0.0025),
        (100, 130, 0.95, [*[0.0] * 10, 1.0], 0.5),
        (99, 130, 0.95, [*[0.0] * 10, 1.0], 0.5 + 0.5 * 0.9),
        # no backtest erred less than half of the expected error: nearer thresholds are a toss
        *(
            (100 * np.exp(sign * 0.1 * score), 100 * np.exp(0.1 * 1.4), 0.9, TENTHS, 0.5 - sign * share / 2)
            for score, share in ((0, 0), (0.25, 0), (0.5, 0), (0.75, 0.25), (1.0, 0.5), (1.4, 0.9), (3.0, 0.9))
            for sign in (1, -1)
        ),
        # three of eleven levels have the least error, so errors of half its size have half of their level
        *(
            (100 * np.exp(-0.1 * score), 100 * np.exp(0.1 * np.interp(0.9, np.linspace(0, 1, 11), TIED)), 0.9, TIED, p)
            for score, p in ((0.25, 0.5 + 0.1 / 2), (0.5, 0.5 + 0.2 / 2))
        ),
    ],
)
def test_probabilities_by_hand(threshold, high, level, scores, probability):
    assert probability_at_least(threshold, 100, high, level, np.array(scores)) == pytest.approx(probability)


@pytest.mark.parametrize(
    ("probabilities", "bounds"),
    [([], (1, 1)), ([0.9, 0.8], (0.7, 0.8)), ([0.5, 0.4, 0.6], (0, 0.4))],
)
def test_joint_bounds_are_those_of_frechet(probabilities, bounds):
    assert joint_bounds(probabilities) == pytest.approx(bounds)


def test_quantiles_are_corrected_for_the_new_score_and_weighted():
    scores, equal = np.array([4.0, 1.0, 3.0, 2.0]), np.ones(4)
    # with four scores and the new one, a level of 0.6 needs three of four
    assert [weighted_quantile(scores, equal, level) for level in (0.0, 0.2, 0.6, 0.61, 0.8, 1.0)] == [1, 1, 3, 4, 4, 4]
    assert weighted_quantile(scores, np.array([1.0, 7.0, 1.0, 1.0]), 0.5) == 1
    assert weighted_quantile(np.array([5.0]), np.array([0.3]), 0.9) == 5


RISING = np.linspace(0, 2, 201).tolist()


def state(**changes):
    values = {"base": 0.1, "weights": {"a": 0.1, "b": 0.0}, "drift": 0.0, "nearest": {"a": 0.5}, "most": 1.0}
    return values | {"farthest": {"a": 2.0}} | {"quantiles": {"": RISING, "t": RISING}} | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"base": 0.0},
        {"base": 1.5},
        {"weights": {"a": 0.1, "b": -1e-6}},
        {"farthest": {"a": -1.0}},
        {"drift": -0.1},
        {"quantiles": {"t": RISING}},
        {"quantiles": {"": RISING, "t": RISING[:-1]}},
        {"quantiles": {"": RISING, "t": [*RISING[:100], 0.5, *RISING[101:]]}},
    ],
)
def test_impossible_values_are_refused(changes):
    with pytest.raises(UserError, match="a calibration must be one of backtests"):
        ConformalCalibration.from_state(state(**changes))


def test_time_alone_widens_intervals_by_the_growth_of_errors_of_known_entities():
    rng = np.random.default_rng(0)
    years, software, known = rng.uniform(0, 2, 4000), np.zeros(4000), np.arange(4000) % 2 == 0
    software[:] = np.where(years > 0.5, 0.5, 0.0)
    sizes = np.where(known, 0.02 + 0.03 * years, 0.1)
    far = pd.DataFrame({"workload": software, RESULTS: np.where(known, 0.1, 1.0), AHEAD: years})
    residuals = sizes * rng.laplace(size=4000)
    calibration = fit(residuals, np.full(4000, "t"), np.arange(4000) % 2, far)
    assert calibration.drift == pytest.approx(0.03, rel=0.3)
    far_ahead = pd.DataFrame({"workload": 0.0, RESULTS: 0.1, AHEAD: [0.0, 1.0, 2.0, 9.0]})
    expected = calibration.expected_error(far_ahead)
    assert expected[2] > 2 * expected[0] and expected[0] < expected[1] < expected[2] <= expected[3]
    undated = fit(residuals, np.full(4000, "t"), np.arange(4000) % 2, far.assign(**{AHEAD: 0.0}))
    assert undated.drift == 0.0


def test_a_smaller_distance_than_those_of_backtests_promises_nothing():
    rng = np.random.default_rng(0)
    far = pd.DataFrame({"workload": rng.uniform(1, 3, 500)})  # whole entities were held out: none was near
    calibration = fit(0.03 * far["workload"].to_numpy() * rng.laplace(size=500), np.full(500, "t"), np.zeros(500), far)
    near, nearest = calibration.expected_error(pd.DataFrame({"workload": [0.0, far["workload"].min()]}))
    assert near == nearest > calibration.base


def test_a_model_survives_its_folder(tmp_path):
    rng = np.random.default_rng(0)
    when = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", None]))
    train = pd.DataFrame({"size": [1.0, 2.0, np.nan]})
    model = InDomainModel().fit(train, [Column("size", Kind.NUMERICAL, Role.FEATURE, "memory")], when)
    residuals, tasks, _, _ = backtested(500)
    far = pd.DataFrame(rng.random((500, len(model.names))), columns=model.names)
    calibration = fit(residuals - 0.02, tasks, np.arange(500) % 3, far)
    questions = (
        train.assign(size=[1.5, 30.0, np.nan]),
        np.array(["one", "two", "new task"]),
        when + pd.Timedelta("800D"),
    )
    for name, scales in (("with", (1.5, 1.0, 2.25)), ("without", ())):
        given, folder = UncertaintyModel(model, calibration, scales=scales), tmp_path / name
        folder.mkdir()
        given.save(folder)
        loaded = UncertaintyModel.load(folder)
        pd.testing.assert_frame_equal(loaded.intervals(*questions), given.intervals(*questions))
        assert loaded.scales == scales and (folder / "scales.json").exists() == bool(scales)
    again = ConformalCalibration.from_state(json.loads(json.dumps(calibration.to_state())))
    assert again.to_state() == calibration.to_state()


def test_ignored_cells_count_in_the_interval_alone():
    """An unknown cell makes no machine unlike others, but its error is as large as that of a far one."""
    rows = pd.DataFrame({"size": [1.0, 2.0, 3.0]})
    in_domain = InDomainModel().fit(rows, [Column("size", Kind.NUMERICAL, Role.FEATURE, "memory")])
    weights = {name: 0.5 if name == "memory" else 0.0 for name in in_domain.names}
    calibration = ConformalCalibration.from_state(state(weights=weights, most=9.0))
    model, far = UncertaintyModel(in_domain, calibration), pd.DataFrame({"size": [30.0]})
    known, ignored, near = (
        model.intervals(X, np.array(["t"]), ignored=cells).iloc[0]
        for X, cells in ((far, None), (far, far > 0), (rows.head(1), None))
    )
    assert known["in_domain_score"] < ignored["in_domain_score"] == near["in_domain_score"] == 1
    assert (known["least_similar_group"], ignored["least_similar_group"]) == ("memory", "")
    names = ["below", "above", "expected_error"]
    assert ignored[names].tolist() == known[names].tolist()
    assert (known[names] > near[names]).all()
