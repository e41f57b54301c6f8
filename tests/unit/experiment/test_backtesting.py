"""Backtests of a fold lie inside its training part, and are of the same kind of split."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from perfcast.experiment.fitting import first_error, plan_backtests, run_backtests
from perfcast.experiment.training import fit_folds
from perfcast.experiment.uncertainty_fit import fit_uncertainty, fold_distances, independent_units, plan_final_backtests
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.uncertainty.conformal import TEST

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY, Tag.IDENTITY)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("month", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("odd", Kind.NUMERICAL, Role.PROVENANCE, "provenance", tags=(Tag.EXCLUDED,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


class Largest(Predictor):
    """Predicts the largest training score."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def _fit(self, X, log_y, validation):
        self.largest_ = float(np.nanmax(log_y))

    def _predict(self, X):
        return np.full((len(X), 1), self.largest_)

    def _save(self, folder): ...

    def _load(self, folder): ...


def table(rows=72, dated=True):
    """Eight years, a row every second month, with growing scores."""
    frame = pd.DataFrame(
        {
            "id": [f"r{i}" for i in range(rows)],
            "part": [f"p{i}" for i in range(rows)],
            "suite": "int",
            "month": pd.date_range("2014-01-01", periods=rows, freq="2MS"),
            "odd": 0.0,
            "cores": np.arange(rows) + 1.0,
            "score": np.arange(rows) + 1.0,
        }
    )
    columns = COLUMNS if dated else tuple(column for column in COLUMNS if column.name != "month")
    return build_table("demo", frame[[column.name for column in columns]], columns)


def forward(rows=72, validation=6, test=12):
    part = np.full(rows, "train", dtype=object)
    part[-test:] = "test"
    part[-test - validation : -test] = "validation"
    return part


def test_backtest_of_a_forward_split_has_earlier_origins():
    demo = table()
    backtests = plan_backtests(demo, forward(), None, 4)
    assert [backtest.number for backtest in backtests] == [0, 1, 2, 3]
    for backtest in backtests:
        assert not (backtest.fitting & backtest.testing).any()
        last = np.flatnonzero(backtest.fitting).max()
        assert np.flatnonzero(backtest.testing).min() == last + 1
        assert np.flatnonzero(backtest.testing).max() < 60, "no test row takes part"
    assert np.flatnonzero(backtests[0].testing).tolist() == list(range(54, 60))
    assert backtests[1].testing.sum() == 12, "the next 24 months"


def test_backtest_of_a_few_shot_split_reveals_the_first_results_of_new_entities():
    demo = table()
    demo.frame["part"] = [f"p{number // 3}" for number in range(72)]
    part = forward()
    part[60:72:3] = part[61:72:3] = "train"  # two results of each new part
    backtests = plan_backtests(demo, part, None, 2)
    assert [backtest.number for backtest in backtests] == [0, 1]
    assert np.flatnonzero(backtests[0].testing).tolist() == [56, 59]
    assert np.flatnonzero(backtests[0].fitting).tolist() == [*range(56), 57, 58]
    assert np.flatnonzero(backtests[1].testing).tolist() == [50, 53, 56, 59]
    assert not backtests[1].fitting[60:].any(), "what the split reveals is later than a backtest"


def test_backtest_limits_the_number_of_windows():
    assert [backtest.number for backtest in plan_backtests(table(), forward(), None, 2)] == [0, 1]


@pytest.mark.parametrize("dated", [True, False])
def test_backtest_of_other_splits_uses_validation_rows(dated):
    part = forward()
    part[[3, 55]] = part[[55, 3]]  # validation rows are not the last ones
    (backtest,) = plan_backtests(table(dated=dated), part, None, 4)
    assert np.flatnonzero(backtest.testing).tolist() == [3, 54, 56, 57, 58, 59]


def test_backtest_needs_validation_rows():
    part = np.where(forward() == "validation", "train", forward())
    assert plan_backtests(table(), part, None, 4) == []
    nothing = run_backtests(table(), [], Largest, 0, 0)
    assert nothing.empty
    assert first_error(nothing) is None


def test_backtest_skips_excluded_rows_and_outliers():
    demo = table()
    demo.frame["part"] = "p"
    demo.frame["score"] = 100.0
    demo.frame.loc[57, "odd"] = 1.0
    demo.frame.loc[5, "score"] = 500.0
    first = plan_backtests(demo, forward(), 0.3, 1)[0]
    assert not first.testing[57] and first.testing.sum() == 5
    assert not first.fitting[5] and first.fitting.sum() == 53


def test_excluded_test_rows_are_predicted_apart_from_the_others():
    demo = table()
    demo.frame.loc[[62, 65, 20], "odd"] = 1.0
    demo.frame.loc[65, "score"] = np.nan
    folds = pd.DataFrame({"fold_0": forward()})
    (fitted,) = fit_folds(demo, folds, lambda fold: {"largest": Largest}, [0], None)
    assert fitted.excluded["row"].tolist() == ["r62"]
    assert set(fitted.test["row"]) == {f"r{number}" for number in range(60, 72)} - {"r62", "r65"}
    (plain,) = fit_folds(table(), folds, lambda fold: {"largest": Largest}, [0], None)
    assert plain.excluded.empty
    assert list(plain.excluded) == list(plain.test)


def test_backtest_fits_without_its_test_rows():
    demo = table()
    predictions = run_backtests(demo, plan_backtests(demo, forward(), None, 2), Largest, 0, 3)
    first, second = predictions[predictions["backtest"] == 0], predictions[predictions["backtest"] == 1]
    assert first["predicted"].unique() == pytest.approx(54)
    assert second["predicted"].unique() == pytest.approx(48)
    assert set(predictions["fold"]) == {3}
    assert first_error(predictions) == pytest.approx(100 * np.mean(1 - 54 / np.arange(55, 61)))


def test_backtest_distances_are_from_fitted_rows():
    demo = table()
    predictions = fold_distances(demo, pd.DataFrame({"fold_0": forward()}), None, 2)
    rows = predictions.groupby("backtest")["row"].agg(list)
    assert rows[TEST] == [f"r{i}" for i in range(60, 72)]
    assert rows[0] == [f"r{i}" for i in range(54, 60)]
    first = predictions[predictions["backtest"] == TEST].iloc[0]
    assert first["years ahead"] == pytest.approx(2 / 12, abs=0.01)
    assert first["few results"] == 1
    assert (np.diff(predictions.loc[predictions["backtest"] == TEST, "processor"]) >= 0).all(), (
        "later machines have more cores"
    )


@pytest.mark.parametrize("dated", [True, False])
def test_fit_uncertainty_calibrates_on_backtests(dated):
    demo = table(dated=dated)
    model = fit_uncertainty(demo, Largest, 0, None, 2)
    when = pd.Series(pd.Timestamp("2026-06-01"), index=demo.frame.index) if dated else None
    outputs = np.full(72, "int" + chr(31) + "score")
    predictions = model.intervals(demo.frame, outputs, when)
    assert (predictions[["below", "above"]] > 0).all(axis=None) and predictions["in_domain_score"].between(0, 1).all()
    again = fit_uncertainty(demo, Largest, 0, None, 2).intervals(demo.frame, outputs, when)
    pd.testing.assert_frame_equal(predictions, again)


def test_fit_uncertainty_needs_enough_rows():
    assert fit_uncertainty(table(1), Largest, 0, None, 2) is None


def test_a_last_year_without_an_earlier_date_is_no_forecast():
    demo = table()
    when = demo.select(tag=Tag.TIME)[0]
    undated = demo.frame[when].where(np.arange(72) >= 36)
    undated = undated.where(undated > undated.max() - pd.DateOffset(months=12))
    partly = replace(demo, frame=demo.frame.assign(**{when: undated}))
    (backtest,) = plan_final_backtests(partly, 0, None, 1)
    assert backtest.fitting.sum() > backtest.testing.sum(), "a sixth of the machines is drawn, dated or not"
    dated = partly.frame[when].notna().to_numpy()
    assert (backtest.fitting & dated).any()


def test_of_few_entities_each_is_held_out_once():
    demo = table()
    entity = demo.column_of(Tag.ENTITY)
    names = np.array(["a", "a", "b", "b", "b", "c"])[np.arange(72) % 6]
    names[0] = "d"
    few = replace(demo, frame=demo.frame.assign(**{entity: names, demo.select(tag=Tag.TIME)[0]: pd.NaT}))
    each = plan_final_backtests(few, 0, None, 1)
    assert [sorted(set(names[backtest.testing])) for backtest in each] == [["a"], ["b"], ["c"]], "one row tests nothing"
    assert all(set(names[backtest.fitting]).isdisjoint(names[backtest.testing]) for backtest in each)
    assert [backtest.number for backtest in each] == [1, 2, 3]


def test_few_entities_err_alike_by_their_setup():
    demo = table()
    entity = demo.column_of(Tag.ENTITY)
    assert independent_units(demo).tolist() == demo.frame[entity].astype(str).tolist()
    few = replace(demo, frame=demo.frame.assign(**{entity: np.where(np.arange(72) % 2, "a", "b")}))
    units = independent_units(few)
    assert units.nunique() >= 2 and all(unit.split("\x1f")[0] in "ab" for unit in units)


def test_few_setups_err_alike_by_their_blocks():
    demo = table()
    run = Column("run", Kind.CATEGORICAL, Role.KEY, "provenance", tags=(Tag.BLOCK,))
    alike = demo.frame.assign(part="a", suite="b", run=[f"run {row // 2}" for row in range(72)])
    units = independent_units(build_table("demo", alike, (*COLUMNS, run)))
    assert units.tolist() == alike["run"].tolist()
