"""Encoded targets on small tables: limits of rows, entities and shares, kinds of columns, pairs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from perfcast.evaluation.leakage import encoded_target
from perfcast.evaluation.leakage.artifacts import Artifacts
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

TOO_FEW = "too few rows to hold out machines"
COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("hint", Kind.NUMERICAL, Role.FEATURE, "system"),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "system"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


def check(rows=300, encode=lambda score: score, kind=Kind.NUMERICAL, **changes):
    rng = np.random.default_rng(1)
    score = np.exp(rng.normal(size=rows))
    number = np.arange(rows)
    frame = pd.DataFrame(
        {"id": number.astype(str), "part": number.astype(str), "suite": "a", "hint": encode(score), "score": score,
         "cores": rng.integers(1, 9, rows).astype(float)}
    ).assign(**changes)  # fmt: skip
    columns = [dataclasses.replace(each, kind=kind) if each.name == "hint" else each for each in COLUMNS]
    table = build_table("small", frame, columns)
    given = Artifacts(table, table.columns, {}, (), frozenset(), None, 1, 0)
    return encoded_target.check_encoded_target(given)


def test_a_copy_of_the_score_is_found_on_held_out_machines():
    report = check()
    assert report.findings[0].startswith("hint leaves 0.")
    assert report.scope == "2 features and their pairs in 1 tasks and targets, 20 % of entities held out"
    assert report.numbers["by"] == "hint in a"
    assert not check(encode=lambda score: score[::-1]).findings


@pytest.mark.parametrize(
    ("rows", "machines", "is_checked"), [(250, 250, True), (245, 245, False), (500, 50, True), (500, 45, False)]
)
def test_fifty_rows_of_ten_machines_are_held_out(rows, machines, is_checked):
    assert (check(rows, part=(np.arange(rows) % machines).astype(str)).scope != TOO_FEW) == is_checked


@pytest.mark.parametrize(
    ("kind", "encode"),
    [
        (Kind.DATE, lambda score: pd.Timestamp("2000-01-01") + pd.to_timedelta((1000 * score).round(), unit="D")),
        (Kind.CATEGORICAL, lambda score: score.round(3).astype(str)),
        (Kind.CATEGORICAL, lambda score: [f"{value:.1f}." for value in np.minimum(score, 3)]),
    ],
    ids=["date", "category of numbers", "text"],
)
def test_dates_and_categories_may_encode_the_score(kind, encode):
    share = check(encode=encode, kind=kind).numbers["least_share_of_error_left"]
    assert share < 0.1


@pytest.mark.parametrize(
    ("tasks", "noise", "finding"),
    [(1, 0.01, "error in a"), (1, 0.05, None), (2, 0.03, None), (3, 0.03, "middle one of 3 tasks"), (3, 0.06, None)],
)
def test_limits_are_for_one_task_and_for_the_median_of_three(tasks, noise, finding):
    spread = np.exp(noise * np.random.default_rng(0).normal(size=900))
    report = check(900, encode=lambda score: score * spread, suite=[*"abc"[:tasks]] * (900 // tasks))
    assert bool(report.findings) == bool(finding)
    assert not finding or finding in report.findings[0]


@pytest.mark.parametrize(("gaps", "is_found"), [(0.0, True), (0.6, False)])
def test_a_pair_is_found_where_most_rows_have_both(gaps, is_found):
    other, drawn = np.exp(np.random.default_rng(5).normal(size=(2, 900)))
    hidden = np.where(np.random.default_rng(6).random(900) < gaps, np.nan, other)
    report = check(900, encode=lambda score: score * other**2, cores=hidden)
    assert bool(report.findings) == is_found
    assert not is_found or report.findings[0].startswith("hint with cores leaves 0.0 %")
    assert not check(900, encode=lambda score: score * other**2, cores=drawn).findings


def test_a_column_that_names_known_machines_alone_encodes_nothing():
    """Groups by machine are of no use on machines that are held out: a fifth of them, whole."""
    part = np.arange(600) // 2
    score = np.exp(np.random.default_rng(2).normal(size=300))[part]
    report = check(600, part=part.astype(str), score=score, hint=np.random.default_rng(3).permutation(300)[part] + 0.0)
    assert report.findings == ()
    assert report.numbers["least_share_of_error_left"] > 0.5


def test_scores_that_are_no_positive_numbers_do_not_count_and_large_tasks_are_subsampled(monkeypatch):
    score = np.where(np.arange(300) < 60, 0.0, np.exp(np.random.default_rng(1).normal(size=300)))
    assert check(score=score, hint=score).scope == TOO_FEW
    assert "in 2 tasks and targets" in check(700, suite=["a", "b"] * 350).scope
    monkeypatch.setattr(encoded_target, "MAX_ROWS", 400)
    assert "hint leaves" in check(4000).findings[0]
    monkeypatch.setattr(encoded_target, "MAX_ROWS", 200)
    assert check(4000).scope == TOO_FEW
