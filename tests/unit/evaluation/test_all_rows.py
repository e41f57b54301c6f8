"""Errors without and with the test rows that are excluded because of their scores, and versions of splits."""

import json

import pandas as pd
import pytest
from generated_results import fake_table, write_runs

from perfcast.evaluation import AVERAGE, evaluate, read_evaluation, write_evaluation
from perfcast.evaluation.run_predictions import COLUMNS, read_excluded
from perfcast.evaluation.supplementary_tables import compare_all_rows
from perfcast.report.error_tables import all_rows_tables
from perfcast.utils.errors import UserError


def predictions(*lines):
    rows = [(row, task, "e", 0, seed, "score", measured, predicted) for row, task, seed, measured, predicted in lines]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_both_means_match_values_computed_by_hand():
    counted = predictions(
        ("a", "int", 0, 100, 110), ("a", "int", 1, 100, 130), ("b", "int", 0, 100, 90), ("b", "int", 1, 100, 90),
        ("c", "fp", 0, 50, 55), ("c", "fp", 1, 50, 55),
    )  # fmt: skip
    excluded = predictions(("x", "int", 0, 10, 20), ("x", "int", 1, 10, 20))
    lines = compare_all_rows(counted, excluded).set_index("task")
    assert lines.loc["int", ["mape", "mape_all_rows"]].tolist() == pytest.approx([15, (10 + 10 + 30 + 10 + 200) / 6])
    assert lines.loc["int", ["rows", "excluded"]].tolist() == [2, 1]
    assert lines.loc["fp", "mape"] == lines.loc["fp", "mape_all_rows"] == pytest.approx(10)
    assert lines.loc[AVERAGE, "mape"] == pytest.approx(12.5)
    assert lines.loc[AVERAGE, ["rows", "excluded"]].tolist() == [3, 1]


@pytest.fixture(scope="module")
def table():
    return fake_table(rows=300, seed=0)


@pytest.fixture
def runs(table, tmp_path):
    return write_runs(table, tmp_path / "runs", seed=1, errors={"nearest": 0.2, "ridge": 0.1})


def test_the_evaluation_has_both_and_keeps_them(table, runs, tmp_path):
    folder = runs["random", "ridge"]
    frame = pd.read_parquet(folder / "predictions.parquet")
    moved = frame.iloc[:1].assign(predicted=frame["measured"].iloc[0] * 9)
    plain = evaluate(runs, table, resamples=10, seed=0)
    assert (plain.tables["all_rows"]["mape"] == plain.tables["all_rows"]["mape_all_rows"]).all()
    assert all_rows_tables(plain) == []
    moved.to_parquet(folder / "excluded.parquet", index=False)
    frame.iloc[1:].to_parquet(folder / "predictions.parquet", index=False)
    other = runs["random", "nearest"]
    pd.read_parquet(other / "predictions.parquet").iloc[1:].to_parquet(other / "predictions.parquet", index=False)
    evaluation = evaluate(runs, table, resamples=10, seed=0)
    line = (
        evaluation.tables["all_rows"].query("split == 'random' and predictor == 'ridge' and task == @AVERAGE").iloc[0]
    )
    assert line["excluded"] == 1
    assert line["mape"] == pytest.approx(evaluation.value("random", "ridge")["value"])
    assert line["mape_all_rows"] > line["mape"] + 1
    write_evaluation(evaluation, tmp_path / "evaluation")
    stored = read_evaluation(tmp_path / "evaluation")
    pd.testing.assert_frame_equal(
        stored.tables["all_rows"], evaluation.tables["all_rows"], check_dtype=False, rtol=1e-4
    )
    (grid,) = all_rows_tables(stored)
    assert "1 in random" in grid.caption
    ridge = next(cells for name, *cells in grid.lines if name == "ridge")
    assert ridge[0].key < ridge[1].key
    (tmp_path / "evaluation" / "all_rows.csv").unlink()
    with pytest.raises(UserError, match=r"all_rows\.csv must exist"):
        read_evaluation(tmp_path / "evaluation")


def test_a_run_without_the_file_has_no_excluded_rows(runs):
    assert read_excluded(runs["random", "ridge"]).empty


def test_a_run_of_another_version_of_its_split_is_refused(table, runs):
    folder = runs["random", "ridge"]
    (folder / "record.json").write_text(json.dumps({"dataset": "fake"}))
    evaluate(runs, table, resamples=10, seed=0)
    (folder / "record.json").write_text(json.dumps({"split_version": 7}))
    with pytest.raises(UserError, match=r"'random' must be of version 1.*is of version 7"):
        evaluate(runs, table, resamples=10, seed=0)
