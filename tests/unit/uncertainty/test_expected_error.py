"""Distances from the training data, expected errors by distance, independent scores, and mixtures of draws."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.uncertainty import in_domain
from perfcast.uncertainty.backtest import backtest_pairs
from perfcast.uncertainty.conformal import fit_expected_error, independent_count
from perfcast.uncertainty.in_domain import AHEAD, OF_PAIR, RESULTS, YOUNG, InDomainModel
from perfcast.uncertainty.mixture import mixture_quantiles, weighted_medians

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
WHEN = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", None, "2020-06-01"]))


def distances(train=TRAIN, when=None, asked_when=None, **changes):
    """The distances of the first training row with some of its values changed."""
    model = InDomainModel().fit(train, COLUMNS, when)
    return model.distances(train.iloc[[0]].assign(**changes), asked_when).iloc[0]


def test_results_of_a_pair_count_those_equal_on_all_its_columns_also_after_a_reading(tmp_path):
    paired = [replace(column, tags=(*column.tags, Tag.PAIR)) for column in COLUMNS[:2]]
    model = InDomainModel().fit(TRAIN, [*paired, *COLUMNS[2:]])
    model.save(tmp_path)
    rows = pd.concat([TRAIN.iloc[[0, 3]], TRAIN.iloc[[0]].assign(family="new")])
    for each in (model, InDomainModel.load(tmp_path)):
        assert each.distances(rows)[OF_PAIR].tolist() == [1 / 4, 1 / 2, 1]
        assert each.distances(rows[:0])[OF_PAIR].tolist() == []
        assert OF_PAIR in each.names
    assert OF_PAIR not in InDomainModel().fit(TRAIN, COLUMNS).distances(rows)


def test_a_task_of_pairs_is_young_by_its_first_training_row_also_after_a_reading(tmp_path):
    task = Column("task", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.TASK, Tag.PAIR))
    train = TRAIN.assign(task=["old", "new", "old", "old"])
    model = InDomainModel().fit(train, [*COLUMNS, task], WHEN)
    model.save(tmp_path)
    rows, when = train.iloc[[0, 1, 1]].assign(task=["old", "new", "unseen"]), pd.Series(["2022-01-01"] * 3)
    for each in (model, InDomainModel.load(tmp_path)):
        assert each.distances(rows, pd.to_datetime(when))[YOUNG].tolist() == [0, 0, 1]
        assert each.distances(rows)[YOUNG].tolist() == [0, 1, 1]
        assert each.names == [*each.distances(rows)]


@pytest.mark.parametrize(
    ("changes", "group", "distance"),
    [
        ({}, "processor", 0),
        ({}, "memory", 0),
        ({}, AHEAD, 0),
        ({}, RESULTS, 1 / 4),
        ({"family": "third"}, "processor", 1 / 2),
        ({"family": "third"}, "memory", 0),
        ({"cores": 1e9}, "processor", 1 / 2),
        ({"channels": np.nan}, "memory", 0),
        ({"train": TRAIN.dropna(), "channels": np.nan}, "memory", 1 / 2),
        ({"part": "b"}, RESULTS, 1 / 2),
        ({"part": "never seen"}, RESULTS, 1),
        *(
            ({"when": WHEN, "asked_when": pd.Series(pd.to_datetime([date]))}, AHEAD, years)
            for date, years in {"2022-01-01": 1.0, "2020-03-01": 0.0, "2035-01-01": 2.0, None: 0.0}.items()
        ),
    ],
)
def test_distances_are_by_group_by_number_of_results_and_by_years_ahead(changes, group, distance):
    assert distances(**changes)[group] == pytest.approx(distance, abs=0.01)


def test_distances_work_without_entity_and_dates():
    columns = [Column("size", Kind.NUMERICAL, Role.FEATURE, "problem")]
    model = InDomainModel().fit(pd.DataFrame({"size": [1.0, 1.0]}), columns)
    distance = model.distances(pd.DataFrame({"size": [1.0, 5.0]}))
    assert list(distance) == model.names == ["problem", RESULTS, AHEAD]
    assert distance["problem"].tolist() == [0, 1]
    assert model.distances(pd.DataFrame({"size": []})).shape == (0, 3)


def wide_rows(count, seed):
    random = np.random.default_rng(seed)
    numbers = np.where(random.random((count, 12)) < 0.1, np.nan, random.normal(size=(count, 12)))
    frame = pd.DataFrame(numbers, columns=[f"metric {number}" for number in range(12)])
    return frame.assign(placement=random.choice(["one", "two"], count))


def test_distances_are_those_of_fewer_references_in_a_wide_group_and_independent_of_the_batch(monkeypatch):
    training, tested = wide_rows(80, 0), pd.concat([wide_rows(700, 1), wide_rows(80, 0).head(5)], ignore_index=True)
    columns = [Column(name, Kind.NUMERICAL, Role.FEATURE, "metrics") for name in training.columns[:-1]]
    columns.append(Column("placement", Kind.CATEGORICAL, Role.FEATURE, "metrics"))
    narrow = InDomainModel().fit(training, columns).distances(tested)
    monkeypatch.setattr(in_domain, "_WIDE", 4)
    model = InDomainModel().fit(training, columns)
    wide = model.distances(tested)
    pd.testing.assert_frame_equal(narrow, wide, rtol=1e-12)
    assert (wide["metrics"].tail(5) == 0).all()
    one_by_one = pd.concat([model.distances(tested.iloc[[row]]) for row in (0, 300, 699)])
    pd.testing.assert_frame_equal(wide.loc[[0, 300, 699]], one_by_one)


DAYS = pd.date_range("2018-01-01", "2022-12-31", freq="D")
LAST_YEAR = np.asarray(DAYS >= "2022-01-01")


def test_backtest_pairs_of_a_forward_split_are_its_validation_rows_and_earlier_cuts():
    (fitting, choosing), *earlier = backtest_pairs(LAST_YEAR, DAYS)
    assert (choosing == LAST_YEAR).all() and (fitting == ~LAST_YEAR).all()
    assert len(earlier) == 3
    for years, (fitting, choosing) in enumerate(earlier, start=1):
        assert DAYS[fitting].max() < pd.Timestamp(f"{2022 - years}-01-01") <= DAYS[choosing].min()
        assert DAYS[choosing].max() < pd.Timestamp(f"{2024 - years}-01-01")


def test_backtests_of_rounds_predict_every_earlier_round_from_those_before_it():
    days = pd.DatetimeIndex(np.repeat(pd.to_datetime(["2021-04-01", "2021-09-01", "2022-04-01", "2022-09-01"]), 5))
    pairs = backtest_pairs(np.asarray(days == days[-1]), days, by_round=True)
    tested = [days[testing].unique().tolist() for _, testing in pairs]
    assert tested == [[day] for day in days.unique().tolist()[:0:-1]]
    for fitting, testing in pairs:
        assert days[fitting].max() < days[testing].min()
    drawn = np.arange(len(days)) % 4 == 0
    assert len(backtest_pairs(drawn, days, by_round=True)) == 1


def test_backtest_pairs_need_later_validation_rows_and_a_tenth_of_the_rows():
    late = pd.DatetimeIndex(np.where(np.arange(len(DAYS)) < 5, DAYS, pd.Timestamp("2021-06-01") + (DAYS - DAYS[0]) / 4))
    mixed = np.arange(len(DAYS)) % 8 == 0
    for validation, dates in ((mixed, DAYS), (LAST_YEAR, None), (np.asarray(late > "2022-01-01"), late)):
        assert len(backtest_pairs(validation, dates)) == 1
    for every in (False, True):
        assert backtest_pairs(np.full(5, every), DAYS[:5]) == []


def made(rows=20_000, base=0.01, weights=(0.1, 0.0), seed=0):
    rng = np.random.default_rng(seed)
    distances = rng.random((rows, len(weights)))
    return np.abs(rng.laplace(0, base + distances @ np.array(weights))), distances, np.ones(rows)


def test_the_true_weights_are_found_and_a_rare_large_error_does_not_rule():
    base, weights = fit_expected_error(*made(base=0.02), 0.0)
    assert base == pytest.approx(0.02, rel=0.1)
    assert weights == pytest.approx([0.1, 0.0], abs=0.004)
    sizes, distances, share = made()
    sizes[:100] = 5.0
    assert fit_expected_error(sizes, distances, share, 0.0)[1] == pytest.approx([0.1, 0.0], abs=0.015)


def test_base_is_a_share_of_the_mean_error_at_least_and_no_weight_is_negative():
    sizes, distances, share = made(base=0.001)
    assert fit_expected_error(sizes, distances, share, 0.0)[0] == pytest.approx(0.2 * sizes.mean(), rel=0.05)
    sizes, distances, share = made(weights=(0.0, 0.0))
    base, weights = fit_expected_error(sizes * (1 - 0.9 * distances[:, 1]), distances, share, 0.0)
    assert base > 0 and weights[0] >= 0 and weights[1] == 0
    base, weights = fit_expected_error(np.zeros(9), np.zeros((9, 1)), np.ones(9), 0.0)
    assert base > 0 and np.isfinite(weights).all()


def test_a_penalty_shrinks_the_weights_in_any_unit():
    sizes, distances, share = made()
    free, some, much = (fit_expected_error(sizes, distances, share, penalty)[1][0] for penalty in (0.0, 0.03, 1.0))
    assert 0 < much < 0.5 * free
    assert much < some < 0.98 * free
    assert fit_expected_error(100 * sizes, distances, share, 1.0)[1][0] == pytest.approx(100 * much, rel=1e-3)


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_no_other_values_have_a_lower_loss(penalty):
    """The loss of the docstring, written once more: Laplace likelihood by share, and the penalty in relative units."""
    sizes, distances, _ = made(rows=2000, base=0.03, weights=(0.1, 0.02))
    share = np.random.default_rng(1).uniform(0.5, 2, len(sizes))
    base, weights = fit_expected_error(sizes, distances, share, penalty)
    cut = np.minimum(sizes, np.quantile(sizes, 0.99))
    mean = np.average(cut, weights=share)

    def loss(values):
        expected = values[0] + distances @ values[1:]
        likelihood = np.average(np.log(expected) + cut / expected, weights=share)
        return likelihood + penalty * np.sum((values[1:] / mean) ** 2)

    fitted = np.append(base, weights)
    assert base > 0.2 * mean
    for place in range(3):
        for factor in (0.97, 1.03):
            assert loss(np.where(np.arange(3) == place, factor * fitted, fitted)) > loss(fitted)


RNG = np.random.default_rng(0)
ENTITIES = np.repeat(np.arange(40), 25)


def test_scores_without_likeness_count_each_and_equal_ones_of_an_entity_once():
    assert independent_count(RNG.exponential(size=1000), ENTITIES) > 700
    assert independent_count(RNG.exponential(size=40)[ENTITIES], ENTITIES) == pytest.approx(40)
    assert independent_count(np.arange(5.0), np.arange(5)) == 5
    assert independent_count(RNG.exponential(size=30), np.zeros(30)) == 30
    assert independent_count(np.ones(30), np.arange(30) % 3) == 30


def test_partial_likeness_is_between_and_a_large_entity_among_small_ones_is_worth_little():
    shared = RNG.normal(size=40)[ENTITIES]
    low, middle, high = (independent_count(shared + spread * RNG.normal(size=1000), ENTITIES) for spread in (0.3, 1, 3))
    assert 40 <= low < middle < high < 1000
    # a correlation of 1 / (1 + 1) in groups of 25 gives 1000 / (1 + 24 / 2)
    assert middle == pytest.approx(1000 / 13, rel=0.3)
    entities = np.append(np.zeros(500, dtype=int), np.arange(1, 41))
    scores = np.append(np.full(500, 9.0) + RNG.uniform(size=500) / 100, RNG.exponential(size=40))
    assert independent_count(scores, entities) < 120


# sizes of errors of a standard normal distribution: 1000 draws of it have these quantiles nearly exactly
NORMAL = norm.ppf((1 + np.minimum(np.linspace(0, 1, 4001), 1 - 1e-7)) / 2).tolist()


def quantiles(medians, errors, weights, levels, *, owners=None, outputs=None, scores=None):
    return mixture_quantiles(
        np.array(medians, dtype=float),
        np.zeros(len(medians), dtype=int) if owners is None else np.array(owners),
        np.array(weights, dtype=float),
        errors=np.array(errors, dtype=float),
        outputs=np.array(outputs or ["fp"] * len(medians)),
        scores=scores or {"": NORMAL},
        levels=levels,
    )


def test_quantiles_of_a_mixture_agree_with_a_numeric_integral():
    medians, errors, weights = [0.0, 0.3, 1.0], [0.1, 0.2, 0.1], [0.5, 0.3, 0.2]

    def density(x):
        parts = zip(medians, errors, weights, strict=True)
        return sum(weight * norm.pdf(x, median, error) for median, error, weight in parts)

    ends = quantiles(medians, errors, weights, (0.05, 0.5, 0.95))[0]
    for level, value in zip((0.05, 0.5, 0.95), ends, strict=True):
        integral, _ = quad(density, -3, value, points=[0.0, 0.3, 1.0], limit=200)
        assert integral == pytest.approx(level, abs=2e-3)


def test_owners_are_apart_outputs_have_their_scores_and_draws_that_differ_widen_the_interval():
    first, second = quantiles([0.0, 5.0], [0.1, 0.2], [1.0, 1.0], (0.05, 0.95), owners=[0, 1])
    assert first == pytest.approx([-0.1645, 0.1645], abs=1e-3)
    assert second == pytest.approx([5 - 0.329, 5 + 0.329], abs=1e-3)
    (narrow,), (wide,) = (quantiles([-gap, gap], [0.1, 0.1], [0.5, 0.5], (0.05, 0.95)) for gap in (0.0, 0.5))
    assert narrow[1] - narrow[0] == pytest.approx(0.329, abs=1e-3)
    assert wide[1] - wide[0] > 1.0
    known = {"owners": [0, 1], "outputs": ["a", "other"], "scores": {"": [0.0, 1.0], "a": [0.0, 3.0]}}
    first, second = quantiles([0, 0], [0.1, 0.1], [1, 1], (0.25, 0.75), **known)
    assert first == pytest.approx([-0.15, 0.15], abs=1e-6)
    assert second == pytest.approx([-0.05, 0.05], abs=1e-6)
    # as everywhere, a quantile in a gap between two draws is the least value that reaches the level
    (end,) = quantiles([0.0, 10.0], [1, 1], [0.5, 0.5], (0.5,), scores={"": [0.0, 1.0]})
    assert end == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("weights", "medians"), [([2, 2, 6, 10, 5, 5], [2.0, 7.0, 5.0]), ([6, 2, 2, 10, 4, 6], [3.0, 7.0, 6.0])]
)
def test_weighted_medians_reach_half_of_the_weight_whatever_its_rounding(weights, medians):
    values, owners = np.array([3.0, 1.0, 2.0, 7.0, 4.0, 6.0]), np.array([0, 0, 0, 1, 2, 2])
    assert weighted_medians(values, owners, np.array(weights) / 10).tolist() == medians
    # sums of tenths miss one half by a bit
    values, owners = np.tile(np.arange(10.0), 5), np.repeat(np.arange(5), 10)
    assert weighted_medians(values, owners, np.full(50, 0.1)).tolist() == [4.5] * 5
