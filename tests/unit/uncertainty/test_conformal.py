"""Intervals: distances from the training data, and calibrated half-widths."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.uncertainty.conformal import ConformalCalibration, UncertaintyModel, units_of_error
from perfcast.uncertainty.in_domain import AHEAD, RESULTS, InDomainModel

COLUMNS = [
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("channels", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("note", Kind.TEXT, Role.FEATURE, "memory"),
]
TRAIN = pd.DataFrame(
    {
        "part": ["a", "a", "a", "b"],
        "family": ["old", "old", "old", "new"],
        "cores": [8.0, 8.0, 8.0, 16.0],
        "channels": [4.0, 8.0, np.nan, 8.0],
        "note": ["x", "y", "z", None],
    }
)


def distances(train=TRAIN, when=None, asked_when=None, **changes):
    """The distances of the first training row with some of its values changed."""
    model = InDomainModel().fit(train, COLUMNS, when)
    return model.distances(train.iloc[[0]].assign(**changes), asked_when).iloc[0]


def test_distance_of_a_training_row_is_zero():
    distance = distances()
    assert distance["processor"] == distance["memory"] == distance[AHEAD] == 0
    assert distance[RESULTS] == pytest.approx(1 / 4)


def test_distances_are_by_group():
    distance = distances(family="third")
    assert distance["processor"] == pytest.approx(1 / 2)
    assert distance["memory"] == 0


def test_numerical_distance_is_a_bounded_share_of_the_range():
    assert 0 < distances(cores=9.0)["processor"] < distances(cores=10.0)["processor"] < 1 / 2
    assert distances(cores=1e9)["processor"] == pytest.approx(1 / 2)


def test_missing_value_has_an_intermediate_distance():
    assert distances(TRAIN.dropna(), channels=np.nan)["memory"] == pytest.approx(1 / 2)
    assert distances(channels=np.nan)["memory"] == 0


def test_distance_of_results_falls_with_their_number():
    assert distances(part="b")[RESULTS] == pytest.approx(1 / 2)
    assert distances(part="never seen")[RESULTS] == 1


def test_time_distance_counts_from_the_last_training_row():
    when = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", None, "2020-06-01"]))
    for date, years in {"2022-01-01": 1.0, "2020-03-01": 0.0, "2035-01-01": 2.0, None: 0.0}.items():
        distance = distances(when=when, asked_when=pd.Series(pd.to_datetime([date])))
        assert distance[AHEAD] == pytest.approx(years, abs=0.01)


def test_distances_work_without_entity_and_dates():
    columns = [Column("size", Kind.NUMERICAL, Role.FEATURE, "problem")]
    model = InDomainModel().fit(pd.DataFrame({"size": [1.0, 1.0]}), columns)
    distance = model.distances(pd.DataFrame({"size": [1.0, 5.0]}))
    assert list(distance) == model.names == ["problem", RESULTS, AHEAD]
    assert distance["problem"].tolist() == [0, 1]
    assert model.distances(pd.DataFrame({"size": []})).shape == (0, 3)


def test_distances_are_independent_of_the_batch():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "part": rng.choice(list("abcd"), 700),
            "family": rng.choice(["old", "new", "third"], 700),
            "cores": rng.integers(1, 64, 700).astype(float),
            "channels": rng.choice([4.0, 8.0, np.nan], 700),
            "note": "",
        }
    )
    model = InDomainModel().fit(TRAIN, COLUMNS)
    together = model.distances(rows)
    one_by_one = pd.concat([model.distances(rows.iloc[[row]]) for row in (0, 300, 699)])
    pd.testing.assert_frame_equal(together.loc[[0, 300, 699]], one_by_one)


def backtested(rows=4000, seed=0, scale=0.01, slope=0.2):
    """Residuals whose size grows with one of two distances, for two tasks of which the second errs twice as much."""
    rng = np.random.default_rng(seed)
    far = pd.DataFrame({"processor": rng.uniform(0, 1, rows), "memory": rng.uniform(0, 1, rows)})
    tasks = np.where(rng.random(rows) < 0.5, "one", "two")
    size = (scale + slope * far["processor"].to_numpy()) * np.where(tasks == "two", 2, 1)
    return size * rng.normal(size=rows), tasks, np.zeros(rows, dtype=int), far


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.99])
def test_half_widths_are_calibrated_near_and_far(level):
    calibration = ConformalCalibration().fit(*backtested(scale=0.04))
    residuals, tasks, _, far = backtested(seed=1, scale=0.04)
    covered = np.abs(residuals) <= calibration.half_widths(tasks, far, level)
    for rows in (tasks == "one", tasks == "two", far["processor"] < 0.3, far["processor"] > 0.7):
        assert covered[rows].mean() == pytest.approx(level, abs=0.05)


def test_farther_rows_have_wider_intervals_and_lower_scores():
    calibration = ConformalCalibration().fit(*backtested())
    rows = pd.DataFrame({"processor": [0.0, 0.5, 1.0], "memory": 0.0})
    widths = calibration.half_widths(np.array(["one"] * 3), rows)
    assert (np.diff(widths) > 0).all()
    score = calibration.in_domain_score(rows)
    assert score[0] == 1
    assert (np.diff(score) < 0).all()
    assert (score > 0).all()


def test_half_width_is_bounded_beyond_the_backtests():
    residuals, tasks, backtests, far = backtested(slope=2.0)
    calibration = ConformalCalibration().fit(residuals, tasks, backtests, far)
    rows = pd.DataFrame({"processor": [0.0, 1.0, 1e3], "memory": 0.0})
    near, farther, farthest = calibration.half_widths(np.array(["two"] * 3), rows)
    (twice,) = calibration.half_widths(np.array(["two"]), pd.DataFrame({"processor": [2.0], "memory": 0.0}))
    assert near < farther < farthest == pytest.approx(twice, rel=0.01)


@given(st.floats(1e-4, 1.0), st.floats(0.0, 1e6), st.integers(0, 2**32 - 1))
def test_no_distance_counts_more_than_twice_that_of_any_backtest(largest, distance, seed):
    """A distance that backtests hardly vary gets a large weight by chance: it must not widen intervals without end."""
    rng = np.random.default_rng(seed)
    far = pd.DataFrame({"results": largest * rng.random(60), "gpu": np.zeros(60)})
    residuals = rng.normal(0, 0.1 + far["results"] / largest)
    calibration = ConformalCalibration().fit(residuals, np.array(["a"] * 60), np.zeros(60), far)
    far_rows = pd.DataFrame({"results": [distance, 2 * largest], "gpu": [1.0, 0.0]})
    least, most = calibration.expected_error(far_rows)
    assert least <= most * (1 + 1e-9)
    assert calibration.in_domain_score(far_rows)[0] <= calibration.base / least + 1e-9


def test_distance_weights_are_not_negative():
    residuals, tasks, backtests, far = backtested(slope=0.0)
    calibration = ConformalCalibration().fit(residuals * (1 - 0.9 * far["memory"]), tasks, backtests, far)
    assert calibration.weights["memory"] == 0


def test_backtests_have_equal_weights():
    small, large = backtested(1000, scale=0.018, slope=0), backtested(20_000, scale=0.01, slope=0)
    residuals, tasks = (np.concatenate(parts) for parts in list(zip(small, large, strict=True))[:2])
    far = pd.concat([small[3], large[3]], ignore_index=True)
    apart = ConformalCalibration().fit(residuals, tasks, np.repeat([0, 1], [1000, 20_000]), far)
    pooled = ConformalCalibration().fit(residuals, tasks, np.zeros(21_000, dtype=int), far)
    unseen = np.array(["unseen output"])
    assert apart.half_widths(unseen, far.iloc[[0]]) > 1.2 * pooled.half_widths(unseen, far.iloc[[0]])


def test_several_backtests_shrink_quantiles_toward_the_pooled_one():
    residuals, tasks, _, far = backtested()
    once, twice = (
        ConformalCalibration()
        .fit(residuals, tasks, backtests, far)
        .half_widths(np.array(["one", "two", ""]), far.iloc[[0] * 3])
        for backtests in (np.zeros(len(tasks), int), np.arange(len(tasks)) % 2)
    )
    assert once[0] < once[2] < once[1]
    assert twice[0] < twice[2] < twice[1]
    assert twice[:2] == pytest.approx((once[:2] + once[2]) / 2, rel=0.06)


def test_several_backtests_shrink_the_weights_of_distances():
    residuals, tasks, _, far = backtested()
    once, twice = (
        ConformalCalibration().fit(residuals, tasks, backtests, far).weights["processor"]
        for backtests in (np.zeros(len(tasks), int), np.arange(len(tasks)) % 2)
    )
    assert 0 < twice < 0.995 * once


def test_quantiles_are_corrected_for_the_number_of_independent_scores():
    """Thirty scores stay thirty however often they are repeated."""
    residuals, tasks, backtests, far = backtested(30)
    times = np.repeat(np.arange(30), 30)
    tasks[:] = "one"
    repeated = (residuals[times], tasks[times], backtests[times], far.iloc[times])
    by_row, by_entity = (ConformalCalibration().fit(*repeated, entities=names) for names in (None, times))
    scores = np.sort(np.abs(residuals) / by_row.expected_error(far))
    # 0.88 * 901 / 900 and 0.88 * 31 / 30 of thirty scores
    assert by_row.quantiles["one"][176] == pytest.approx(scores[26])
    assert by_entity.quantiles["one"][176] == pytest.approx(scores[27])


def test_task_with_few_residuals_uses_the_pooled_ones():
    residuals, tasks, backtests, far = backtested()
    tasks = np.where(np.arange(len(tasks)) < 20, "rare", tasks)
    calibration = ConformalCalibration().fit(residuals, tasks, backtests, far)
    rare, unseen = calibration.half_widths(np.array(["rare", "never seen"]), far.iloc[[0, 0]])
    assert rare == unseen


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_any_residuals_give_finite_positive_widths(residuals, level):
    far = pd.DataFrame({"processor": np.linspace(0, 1, len(residuals))})
    calibration = ConformalCalibration().fit(
        np.array(residuals), np.full(len(residuals), "t"), np.zeros(len(residuals), int), far
    )
    widths = calibration.half_widths(np.full(len(residuals), "t"), far, level)
    assert np.isfinite(widths).all()
    assert (widths >= 0).all()
    # of the residuals it was fitted to, an interval holds at least its level
    assert (np.abs(residuals) <= widths + 1e-12).mean() >= level - 1e-9


def test_calibration_survives_json():
    calibration = ConformalCalibration().fit(*backtested(300))
    _, tasks, _, far = backtested(50, seed=2)
    residuals, all_tasks, _, all_far = backtested(300)
    several = ConformalCalibration().fit(residuals - 0.02, all_tasks, np.arange(300) % 3, all_far)
    for fitted in (calibration, several):
        again = ConformalCalibration.from_state(json.loads(json.dumps(fitted.to_state())))
        np.testing.assert_array_equal(again.half_widths(tasks, far), fitted.half_widths(tasks, far))


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, float("nan")])
def test_half_widths_refuse_an_invalid_level(level):
    calibration = ConformalCalibration().fit(*backtested(100))
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibration.half_widths(np.array(["one"]), backtested(1)[3], level)


def test_fit_needs_residuals():
    with pytest.raises(ValueError, match="needs residuals"):
        ConformalCalibration().fit(np.zeros(0), np.zeros(0), np.zeros(0), pd.DataFrame({"processor": []}))


def test_uncertainty_model_survives_its_folder(tmp_path):
    when = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", None, "2020-06-01"]))
    model = InDomainModel().fit(TRAIN, COLUMNS, when)
    residuals, tasks, backtests, _ = backtested(500)
    far = pd.DataFrame(np.random.default_rng(0).random((500, len(model.names))), columns=model.names)
    calibrated = UncertaintyModel(model, ConformalCalibration().fit(residuals, tasks, backtests, far))
    calibrated.save(tmp_path)
    rows = TRAIN.assign(family=["old", "third", None, "new"], cores=[8.0, 9.0, np.nan, 64.0])
    later = pd.Series(pd.to_datetime(["2022-03-01"] * 4))
    tasks = np.array(["one", "two", "one", "new task"])
    pd.testing.assert_frame_equal(
        UncertaintyModel.load(tmp_path).intervals(rows, tasks, later), calibrated.intervals(rows, tasks, later)
    )


def test_intervals_name_the_least_similar_group():
    model = InDomainModel().fit(TRAIN, COLUMNS)
    far = pd.DataFrame(np.random.default_rng(0).random((900, len(model.names))), columns=model.names)
    size = 0.01 + 0.2 * far["processor"] + 0.1 * far["memory"]
    residuals = size.to_numpy() * np.random.default_rng(1).normal(size=900)
    calibration = ConformalCalibration().fit(residuals, np.full(900, "t"), np.zeros(900, int), far)
    calibration.weights |= {RESULTS: 0.0, AHEAD: 0.0}
    rows = TRAIN.iloc[[0, 0, 0]].assign(family=["old", "third", "old"], channels=[4.0, 4.0, 400.0])
    intervals = UncertaintyModel(model, calibration).intervals(rows, np.full(3, "t"))
    assert intervals["least_similar_group"].tolist() == ["", "processor", "memory"]
    assert intervals["in_domain_score"].iloc[0] == 1
    assert (intervals["in_domain_score"].iloc[1:] < 1).all()
    for side in ("below", "above"):
        assert (intervals[side].iloc[1:] > intervals[side].iloc[0]).all()


def test_pit_is_the_level_of_the_narrowest_interval_with_the_residual():
    random = np.random.default_rng(5)
    far = pd.DataFrame({"processor": random.random(600)})
    tasks = np.where(np.arange(600) % 2 == 0, "int", "fp")
    residuals = random.normal(0, 0.1, 600) * (1 + far["processor"].to_numpy()) * np.where(tasks == "int", 1, 3)
    calibration = ConformalCalibration().fit(residuals, tasks, np.zeros(600), far)
    levels = calibration.pit(tasks, far, residuals)
    for level in (0.5, 0.8, 0.95):
        inside = np.abs(residuals) <= calibration.half_widths(tasks, far, level)
        # a residual that lies on the edge may fall on either side
        assert (inside != (levels <= level + 1e-9)).sum() <= 2
        assert (levels <= level + 1e-9).mean() == pytest.approx(level, abs=0.02)
    beyond = calibration.pit(np.array(["int", "other"]), far.iloc[:2], np.array([9.0, 0.0]))
    assert beyond.tolist() == [np.inf, 0.0]


def test_outputs_with_few_rows_share_the_quantiles_of_their_kind():
    residuals = np.concatenate([np.full(30, 0.01), np.full(30, 0.01), np.full(60, 0.2)])
    outputs = np.repeat(["small a", "small b", "large"], [30, 30, 60])
    distances = pd.DataFrame({"near": np.zeros(120)})
    common = ConformalCalibration().fit(residuals, outputs, np.zeros(120), distances)
    kinds = np.repeat(["loss", "loss", "accuracy"], [30, 30, 60])
    by_kind = ConformalCalibration().fit(residuals, outputs, np.zeros(120), distances, kinds=kinds)
    few, nowhere = np.array(["small a", "large"]), distances[:2]
    np.testing.assert_allclose(common.half_widths(few, nowhere), [0.2, 0.2])
    np.testing.assert_allclose(by_kind.half_widths(few, nowhere), [0.01, 0.2])


def test_rows_of_one_entity_err_alike_by_their_blocks():
    entities, blocks = np.array(["a", "a", "b"]), np.array(["1", "2", "3"])
    assert units_of_error(entities, blocks).tolist() == ["a", "a", "b"]
    assert units_of_error(entities[:2], blocks[:2]).tolist() == ["1", "2"]
