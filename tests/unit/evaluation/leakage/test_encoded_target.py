"""Encoded targets by hand: limits of rows and entities, kinds of columns, shares of the error of a constant."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.evaluation.leakage import encoded_target
from perfcast.evaluation.leakage.artifacts import Artifacts
from perfcast.evaluation.leakage.encoded_target import _as_values, _finding, _has_enough, _logs, _Output, _pairs, _share
from perfcast.schema.table import Column, Kind, Role, Tag, build_table


@pytest.mark.parametrize(
    ("held_out", "known", "entities", "enough"),
    [
        (50, 50, 10, True),
        (49, 50, 10, False),
        (50, 49, 10, False),
        (50, 50, 9, False),
    ],
)
def test_fifty_rows_of_ten_entities_are_enough(held_out, known, entities, enough):
    mask = np.arange(held_out + known) < held_out
    many = np.arange(held_out + known) % 25
    few = np.arange(held_out + known) % entities
    assert _has_enough(mask, few) == enough
    for either in (mask, ~mask):
        assert _has_enough(mask, np.where(either, many, few)) == enough


def values(given, kind):
    return _as_values(pd.Series(given, index=range(5, 5 + len(given))), Column("x", kind, Role.FEATURE, "system"))


def test_numbers_dates_and_categories_that_are_numbers_are_numbers():
    days = values(pd.to_datetime(["2000-01-03", None, "1999-12-31"]), Kind.DATE)
    assert days.dtype == float
    assert days.fillna(-99).tolist() == [2, -99, -1]
    assert values([1, 2], Kind.NUMERICAL).dtype == float
    digits = values(["8", None, "1.5"], Kind.CATEGORICAL)
    assert digits.dtype == float
    assert digits.fillna(-99).tolist() == [8, -99, 1.5]
    for text in (["8", "x", None], [None, None]):
        assert values(pd.Series(text, dtype=object), Kind.CATEGORICAL).dtype == object
    assert digits.index.tolist() == days.index.tolist() == [0, 1, 2]


def test_shares_are_of_the_error_of_a_constant():
    logs = np.array([1.0, 1.2, 1.4, 0.8])
    assert _share(logs + 0.05, logs, 1.0) == pytest.approx(0.05 / 0.2)
    assert _share(logs - [0.0, 0.1, 0.1, 0.3], logs, 1.0) == pytest.approx(0.1 / 0.2)
    assert _share(logs, np.full(4, 1.051), 1.0) is not None
    assert _share(logs, np.full(4, 1.049), 1.0) is None


def test_logarithms_are_of_positive_columns_and_gaps_are_the_mean():
    assert _logs(pd.Series([1.0, np.e, np.nan])) == pytest.approx([0, 1, 0.5])
    assert _logs(pd.Series([0.0, 2.0])) == pytest.approx([0, 2])
    assert _logs(pd.Series([-1.0, 2.0, np.nan])) == pytest.approx([-1, 2, 0.5])
    assert _logs(pd.Series([3.0, 3.0, np.nan])) is None
    assert _logs(pd.Series([3.0, 5.0, np.nan, np.nan])) is not None
    assert _logs(pd.Series([3.0, 5.0, np.nan, np.nan, np.nan])) is None
    assert _logs(pd.Series([1e-9, 1e9])) is not None


@pytest.mark.parametrize(
    ("shares", "finding"),
    [
        ({"a": 0.0199}, "x leaves 2.0 % of a constant's error in a"),
        ({"a": 0.0201}, None),
        ({"a": 0.5, "b": 0.01, "c": 0.015}, "x leaves 1.0 % of a constant's error in b"),
        ({"a": 0.03, "b": 0.039}, None),
        ({"a": 0.03, "b": 0.039, "c": 0.9}, "x leaves 3.9 % of a constant's error in the middle one of 3 tasks"),
        ({"a": 0.03, "b": 0.041, "c": 0.9}, None),
        (
            {"a": 0.03, "b": 0.03, "c": 0.045, "d": 0.9},
            "x leaves 3.8 % of a constant's error in the middle one of 4 tasks",
        ),
    ],
)
def test_limits_are_for_one_task_and_for_the_median_of_three(shares, finding):
    assert _finding("x", shares) == finding


def output(columns, logs):
    held_out = np.arange(len(logs)) % 5 == 0
    return _Output("t", logs, held_out, np.arange(len(logs)), pd.DataFrame(columns))


def test_the_best_pair_is_found_among_others():
    rng = np.random.default_rng(0)
    first, second, other, noise = np.exp(rng.normal(size=(4, 400)))
    logs = np.log(first) - 2 * np.log(second) + 7 + 0.001 * rng.normal(size=400)
    columns = {"other": other, "first": first, "noise": noise, "second": second, "text": ["a"] * 400, "same": first}
    ((name, share),) = _pairs(output(columns, logs), ["other", "first", "noise", "second", "text"])
    assert name == "first with second"
    assert share < 0.01
    # columns that repeat each other are no pair
    ((name, _),) = _pairs(output(columns, logs), ["first", "same", "second"])
    assert name == "first with second"
    assert list(_pairs(output(columns, logs), ["first", "text"])) == []
    assert list(_pairs(output(columns, logs), ["first"])) == []


COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("hint", Kind.NUMERICAL, Role.FEATURE, "system"),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "system"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


def check(rows=300, encode=lambda score: score, **changes):
    rng = np.random.default_rng(1)
    score = np.exp(rng.normal(size=rows))
    number = np.arange(rows)
    frame = pd.DataFrame(
        {"id": number.astype(str), "part": number.astype(str), "suite": "a", "hint": encode(score), "score": score,
         "cores": rng.integers(1, 9, rows).astype(float)}
    ).assign(**changes)  # fmt: skip
    table = build_table("small", frame, COLUMNS)
    given = Artifacts(table, table.columns, {}, (), frozenset(), None, 1, 0)
    return encoded_target.check_encoded_target(given)


def test_a_copy_of_the_score_is_found_on_held_out_machines():
    report = check()
    assert (
        report.findings == ("hint leaves 0.2 % of a constant's error in a",) or "hint leaves 0." in report.findings[0]
    )
    assert report.scope == "2 features and their pairs in 1 tasks and targets, 20 % of entities held out"
    assert report.numbers["by"] == "hint in a"
    assert not check(encode=lambda score: score[::-1]).findings


def test_a_column_that_names_known_machines_alone_encodes_nothing():
    """Groups by machine are of no use on machines that are held out: a fifth of them, whole."""
    part = np.arange(600) // 2
    score = np.exp(np.random.default_rng(2).normal(size=300))[part]
    report = check(600, part=part.astype(str), score=score, hint=np.random.default_rng(3).permutation(300)[part] + 0.0)
    assert report.findings == ()
    assert report.numbers["least_share_of_error_left"] > 0.5


def test_scores_that_are_no_positive_numbers_do_not_count():
    score = np.where(np.arange(300) < 60, 0.0, np.exp(np.random.default_rng(1).normal(size=300)))
    assert check(score=score, hint=score).scope == "too few rows to hold out machines"
    assert check(rows=240).scope == "too few rows to hold out machines"
    assert "in 2 tasks and targets" in check(700, suite=["a", "b"] * 350).scope


def test_large_tasks_are_subsampled(monkeypatch):
    monkeypatch.setattr(encoded_target, "MAX_ROWS", 400)
    assert "hint leaves" in check(4000).findings[0]
    monkeypatch.setattr(encoded_target, "MAX_ROWS", 200)
    assert check(4000).scope == "too few rows to hold out machines"
