"""A fold rehearses its own kind of question, inside its training part."""

import numpy as np
import pandas as pd
import pytest

from perfcast.calibrating import calibrate, distances_of
from perfcast.intervals import TEST
from perfcast.predictors.base import Predictor
from perfcast.rehearsal import first_error, rehearsals_of, rehearse
from perfcast.schema import Column, Kind, Role, Tag, build_table

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "audit", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY, Tag.IDENTITY)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("month", Kind.DATE, Role.PROVENANCE, "audit", tags=(Tag.TIME,)),
    Column("odd", Kind.NUMERICAL, Role.PROVENANCE, "audit", tags=(Tag.UNJUDGED,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


class Largest(Predictor):
    """Forecasts the largest score that it was given."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def _fit(self, X, log_y, valid):
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


def forward(rows=72, valid=6, test=12):
    part = np.full(rows, "train", dtype=object)
    part[-test:] = "test"
    part[-test - valid : -test] = "valid"
    return part


def test_a_question_about_the_future_is_asked_about_earlier_years_too():
    demo = table()
    held = rehearsals_of(demo, forward(), None, 4)
    assert [one.number for one in held] == [0, 1, 2, 3]
    for one in held:
        assert not (one.fitting & one.asked).any()
        last = np.flatnonzero(one.fitting).max()
        assert np.flatnonzero(one.asked).min() == last + 1
        assert np.flatnonzero(one.asked).max() < 60, "no test row takes part"
    assert np.flatnonzero(held[0].asked).tolist() == list(range(54, 60))
    assert held[1].asked.sum() == 12, "the next 24 months"


def test_no_more_rehearsals_than_asked_for():
    assert [one.number for one in rehearsals_of(table(), forward(), None, 2)] == [0, 1]


@pytest.mark.parametrize("dated", [True, False])
def test_other_questions_are_rehearsed_once_on_their_valid_rows(dated):
    part = forward()
    part[[3, 55]] = part[[55, 3]]  # valid rows are not the last ones
    (one,) = rehearsals_of(table(dated=dated), part, None, 4)
    assert np.flatnonzero(one.asked).tolist() == [3, 54, 56, 57, 58, 59]


def test_without_valid_rows_nothing_is_rehearsed():
    part = np.where(forward() == "valid", "train", forward())
    assert rehearsals_of(table(), part, None, 4) == []
    nothing = rehearse(table(), [], Largest, 0, 0)
    assert nothing.empty
    assert first_error(nothing) is None


def test_rows_that_judge_nothing_are_not_asked_about_and_outliers_not_learned():
    demo = table()
    demo.frame["part"] = "p"
    demo.frame["score"] = 100.0
    demo.frame.loc[57, "odd"] = 1.0
    demo.frame.loc[5, "score"] = 500.0
    first = rehearsals_of(demo, forward(), 0.3, 1)[0]
    assert not first.asked[57] and first.asked.sum() == 5
    assert not first.fitting[5] and first.fitting.sum() == 53


def test_a_rehearsal_has_not_seen_what_it_is_asked():
    demo = table()
    found = rehearse(demo, rehearsals_of(demo, forward(), None, 2), Largest, 0, 3)
    first, second = found[found["rehearsal"] == 0], found[found["rehearsal"] == 1]
    assert first["predicted"].unique() == pytest.approx(54)
    assert second["predicted"].unique() == pytest.approx(48)
    assert set(found["fold"]) == {3}
    assert first_error(found) == pytest.approx(100 * np.mean(1 - 54 / np.arange(55, 61)))


def test_distances_are_from_the_rows_fitted_on():
    demo = table()
    found = distances_of(demo, pd.DataFrame({"fold_0": forward()}), None, 2)
    asked = found.groupby("rehearsal")["row"].agg(list)
    assert asked[TEST] == [f"r{i}" for i in range(60, 72)]
    assert asked[0] == [f"r{i}" for i in range(54, 60)]
    first = found[found["rehearsal"] == TEST].iloc[0]
    assert first["years ahead"] == pytest.approx(2 / 12, abs=0.01)
    assert first["few results"] == 1
    assert (np.diff(found.loc[found["rehearsal"] == TEST, "processor"]) >= 0).all(), "later machines have more cores"


@pytest.mark.parametrize("dated", [True, False])
def test_a_final_predictor_is_calibrated_by_what_it_would_have_said(dated):
    demo = table(dated=dated)
    calibrated = calibrate(demo, Largest, 0, None, 2)
    when = pd.Series(pd.Timestamp("2026-06-01"), index=demo.frame.index) if dated else None
    questions = np.full(72, "int" + chr(31) + "score")
    found = calibrated.intervals(demo.frame, questions, when)
    assert (found["half"] > 0).all() and found["support"].between(0, 1).all()
    again = calibrate(demo, Largest, 0, None, 2).intervals(demo.frame, questions, when)
    pd.testing.assert_frame_equal(found, again)


def test_too_few_rows_give_no_calibration():
    assert calibrate(table(1), Largest, 0, None, 2) is None
