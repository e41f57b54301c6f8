"""Leakage checks on tables small enough to work out by hand: limits, absent rows, and what a check leaves alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from perfcast.evaluation.leakage.artifacts import Artifacts, Run, join_names
from perfcast.evaluation.leakage.file_checks import (
    check_backtest_rows,
    check_future_dates,
    check_split_rules,
    check_test_rows,
)
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("launched", Kind.DATE, Role.PROVENANCE, "processor"),
    Column("tested", Kind.DATE, Role.PROVENANCE, "provenance"),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)
ROWS = 200


def made_table(**changes):
    number = np.arange(ROWS)
    frame = pd.DataFrame(
        {
            "id": [f"r{row:03d}" for row in number],
            "part": [f"p{row // 2}" for row in number],
            "suite": np.where(number % 2, "a", "b"),
            "cores": number % 7 + 1.0,
            "launched": pd.Timestamp("2019-01-01"),
            "tested": pd.Timestamp("2030-01-01"),
            "published": pd.date_range("2020-01-01", periods=ROWS, freq="D"),
            "score": 10.0 + number,
        }
    ).assign(**changes)
    return build_table("small", frame, COLUMNS)


def subset(test=40, validation=20):
    """The last rows are tested, those before them validate."""
    return ["train"] * (ROWS - test - validation) + ["validation"] * validation + ["test"] * test


def artifacts(table=None, folds=None, runs=(), split="forward_small", **changes):
    table = made_table() if table is None else table
    values = {
        "table": table, "standard": table.columns, "runs": runs, "seed": 0,
        "splits": {split: pd.DataFrame({"id": table.frame["id"], "fold_0": subset() if folds is None else folds})},
        "control": SimpleNamespace(),
    }  # fmt: skip
    return Artifacts(**values | changes)


def write_run(folder, frame, predictor="ridge", split="forward_small", backtest=None):
    run = Run(split, predictor, folder / split / predictor)
    run.folder.mkdir(parents=True)
    frame.to_parquet(run.folder / "predictions.parquet", index=False)
    backtest = frame.assign(backtest=0).head(0) if backtest is None else backtest
    backtest.to_parquet(run.folder / "backtest.parquet", index=False)
    return run


def predictions(rows=range(ROWS - 40, ROWS), **changes):
    rows = list(rows)
    frame = pd.DataFrame({"row": [f"r{row:03d}" for row in rows], "target": "score", "fold": 0, "seed": 0})
    return frame.assign(measured=[10.0 + row for row in rows], predicted=[11.0 + row for row in rows]).assign(**changes)


@pytest.mark.parametrize(
    ("names", "first"),
    [(["unseen_cpu", "random"], "random"), (["unseen_cpu", "forward_2023"], "unseen_cpu"), (["shuffled"], "shuffled"),
     (["shuffled", "unseen_cpu"], "unseen_cpu"), (["random_05_percent", "forward_2023"], "forward_2023")],
)  # fmt: skip
def test_the_control_has_the_first_split_that_counts(names, first):
    assert [join_names(list("abcde")[:n]) for n in (1, 3, 5)] == ["a", "a, b, c", "a, b, c and 2 more"]
    folds = pd.DataFrame({"fold_0": subset()})
    assert artifacts(splits=dict.fromkeys(names, folds)).first_split() == first


def test_correct_predictions_pass_and_are_counted_also_of_two_seeds(tmp_path):
    twice = pd.concat([predictions(), predictions(seed=1)])
    report = check_test_rows(artifacts(runs=(write_run(tmp_path, twice),)))
    assert (report.scope, report.findings) == ("80 predictions of 1 runs", ())


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"row": ["r010", "r150"]}, "2 predictions of rows that are not test rows"),
        ({"row": ["r199", "absent"]}, "1 predictions of rows that are not test rows"),
        ({"fold": [0, 1]}, "1 predictions of rows that are not test rows"),
        ({"row": ["r198", "r198"]}, "1 rows are predicted twice"),
        ({"measured": [208.0, np.nan]}, "1 measured scores"),
        ({"target": ["score", "other"]}, "1 measured scores"),
    ],
)
def test_wrong_predictions_are_counted(tmp_path, changes, finding):
    run = write_run(tmp_path, predictions([198, 199], **changes))
    findings = check_test_rows(artifacts(runs=(run,))).findings
    assert any(text.startswith(f"ridge on forward_small: {finding}") for text in findings)


@pytest.mark.parametrize(
    ("rows", "findings"),
    [
        ([0, 139, 140, 159], []),
        ([0, 160], ["1 backtest rows are test rows"]),
        ([0, 5000], ["1 backtest rows are not in the fold's training part"]),
        ([7, 7, 8], ["1 rows are in one backtest twice"]),
    ],
)
def test_backtest_rows_are_of_the_training_part(tmp_path, rows, findings):
    run = write_run(tmp_path, predictions(), backtest=predictions(rows, backtest=0))
    report = check_backtest_rows(artifacts(runs=(run, write_run(tmp_path, predictions(), "empty"))))
    assert report.scope == f"{len(rows)} backtest predictions of 2 runs"
    assert len(report.findings) == len(findings)
    for text, expected in zip(report.findings, findings, strict=True):
        assert text.startswith(f"ridge on forward_small: {expected}")
    twice = pd.concat([predictions([3], backtest=number) for number in (0, 1)])
    run = write_run(tmp_path, predictions(), "twice", backtest=twice)
    assert check_backtest_rows(artifacts(runs=(run,))).findings == (), "a row may be in two backtests"


def test_damaged_tables_of_a_run_are_one_line(tmp_path):
    run = write_run(tmp_path, predictions())
    path = run.folder / "predictions.parquet"
    for damage, words in (
        (lambda: predictions().drop(columns=["seed", "measured"]).to_parquet(path), "must have the column 'measured'"),
        (lambda: path.write_bytes(b"no table"), "must be a Parquet file"),
        (path.unlink, "must exist"),
    ):
        damage()
        with pytest.raises(UserError, match=words):
            run.predictions()


def late(rows, days=200):
    dates = pd.Series(pd.Timestamp("2019-01-01"), index=range(ROWS))
    dates[list(rows)] = pd.Timestamp("2020-01-01") + pd.Timedelta(days=days)
    return dates.to_numpy()


@pytest.mark.parametrize(
    ("changes", "finding", "late_facts"),
    [
        ({}, None, 0),
        ({"launched": late(range(3))}, None, 3),
        ({"launched": late(range(3), 159)}, None, 0),
        ({"launched": late(range(4))}, "4 training rows have launched in or after 2020-06", 0),
        ({"launched": late(range(150, 200))}, "10 training rows have launched in or after 2020-06", 0),
    ],
)
def test_late_facts_are_counted_up_to_two_percent_of_training_rows(changes, finding, late_facts):
    """160 training rows allow three; dates in the group of the result's own date are not compared."""
    report = check_future_dates(artifacts(made_table(**changes)))
    assert report.findings == ((f"forward_small fold_0: {finding}",) if finding else ())
    assert report.numbers == {"late_facts": late_facts}
    assert report.scope == "published, launched in forward_small"


def test_dates_of_training_rows_are_known_and_earlier():
    days = made_table().frame["published"].to_numpy(copy=True)
    days[[0, 159]] = np.datetime64("NaT"), days[160]
    report = check_future_dates(artifacts(made_table(published=days)))
    assert report.findings == (
        "forward_small fold_0: 1 training rows have published in or after 2020-06",
        "forward_small fold_0: 1 training rows have no published",
    )


def test_a_split_of_other_rows_is_reported_once():
    table = made_table()
    folds = pd.DataFrame({"id": table.frame["id"], "fold_0": subset()})
    short, swapped = folds.iloc[1:], folds.assign(id=folds["id"].to_numpy()[::-1])
    for frame in (short, swapped):
        report = check_split_rules(artifacts(table, splits={"random": frame}))
        assert report.findings == ("the rows of the split random are not those of the features table, in its order",)
