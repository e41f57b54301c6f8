"""Leakage checks of rows: both sides of a split, future dates, wrong prediction and backtest rows."""

import numpy as np
import pandas as pd
import pytest
from leakage_project import COLUMNS, change_table, copied, machines, refused, rewrite, run_checks

from perfcast.schema.table import Role


@pytest.fixture
def project(tmp_path):
    return copied(tmp_path)


def test_block_on_both_sides_is_reported(project, capsys):
    path = project / "splits" / "random.parquet"
    first = machines().frame

    def move(frame):
        blocks = first["block"].to_numpy()
        tested = np.flatnonzero((frame["fold_0"] == "test") & pd.Series(blocks).duplicated(keep=False).to_numpy())
        frame.loc[tested[0], "fold_0"] = "train"

    rewrite(path, move)
    refused(project, capsys, "split rules", "random: fold_0: 1 blocks both in train or validation and in test")


def test_equal_configurations_on_both_sides_are_reported(project, capsys):
    parts = pd.read_parquet(project / "splits" / "random.parquet")["fold_0"]
    features = [column.name for column in COLUMNS if column.role is Role.FEATURE]

    def copy(frame, columns):
        tested, trained = np.flatnonzero(parts == "test")[0], np.flatnonzero(parts == "train")[0]
        frame.loc[tested, features] = frame.loc[trained, features]
        return frame, columns

    change_table(project, copy)
    refused(project, capsys, "split rules", "1 feature vectors both in train or validation and in test")


def test_split_with_reordered_rows_is_reported(project, capsys):
    rewrite(project / "splits" / "random.parquet", lambda frame: frame.iloc[::-1])
    code, lines, _ = run_checks(project, capsys)
    assert code == 2
    assert any("the rows of the split random are not those of the features table" in line for line in lines)


def test_training_rows_from_the_future_are_reported(project, capsys):
    def learn(frame):
        tested = machines().frame["published"].where(frame["fold_0"] == "test")
        frame.loc[tested.nlargest(6).index, "fold_0"] = "train"

    rewrite(project / "splits" / "forward_2023.parquet", learn)
    findings = refused(project, capsys, "future dates", "6 training rows have published in or after 2023-")
    assert any("not known before 2023-01" in finding for finding in findings["split rules"])


def test_facts_dated_after_the_cut_are_reported(project, capsys):
    def late(frame, columns):
        frame["launched"] = pd.Timestamp("2024-07-01")
        return frame, columns

    change_table(project, late)
    refused(project, capsys, "future dates", "forward_2023 fold_0", "training rows have launched in or after")


def test_few_late_dates_are_counted_and_accepted(project, capsys):
    trained = pd.read_parquet(project / "splits" / "forward_2023.parquet")["fold_0"] == "train"

    def late(frame, columns):
        frame.loc[np.flatnonzero(trained)[:3], "launched"] = pd.Timestamp("2024-07-01")
        return frame, columns

    change_table(project, late)
    code, _, written = run_checks(project, capsys)
    assert code == 0
    assert next(entry for entry in written["checks"] if entry["check"] == "future dates")["numbers"]["late_facts"] == 3


def test_predictions_of_training_rows_are_reported(project, capsys):
    parts = pd.read_parquet(project / "splits" / "random.parquet")
    trained = parts.loc[parts["fold_0"] == "train", "id"].iloc[0]

    def swap(frame):
        frame.loc[0, "row"] = trained

    rewrite(project / "runs" / "random" / "ridge" / "predictions.parquet", swap)
    words = ("1 predictions of rows that are not test rows of the fold", "1 measured scores are not those")
    refused(project, capsys, "test rows", *words)


def test_row_predicted_twice_is_reported(project, capsys):
    path = project / "runs" / "random" / "ridge" / "predictions.parquet"
    rewrite(path, lambda frame: pd.concat([frame, frame.head(2)]))
    refused(project, capsys, "test rows", "ridge on random: 2 rows are predicted twice")


def test_backtests_on_test_rows_are_reported(project, capsys):
    tested = pd.read_parquet(project / "splits" / "forward_2023.parquet").query("fold_0 == 'test'")["id"].iloc[:4]

    def swap(frame):
        frame.loc[:3, "row"] = tested.to_numpy()

    rewrite(project / "runs" / "forward_2023" / "nearest" / "backtest.parquet", swap)
    refused(project, capsys, "backtest rows", "nearest on forward_2023: 4 backtest rows are test rows of the same fold")
