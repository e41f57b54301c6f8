"""Leaks planted into the files of a clean project: each is refused, by the check that is to find it."""

import json

import numpy as np
import pandas as pd
import pytest
from leakage_project import COLUMNS, as_feature, change_table, copied, machines, refused, rewrite, run_checks

from perfcast.domains.servers.processors.announcements import announced_index
from perfcast.schema.table import Role
from perfcast.utils.io import write_json
from perfcast.utils.result_digests import record_digests


@pytest.fixture
def project(tmp_path):
    return copied(tmp_path)


def rows_of(project, split, subset):
    frame = pd.read_parquet(project / "splits" / f"{split}.parquet")
    return np.flatnonzero(frame["fold_0"] == subset)


def split_a_block(project):
    tested = rows_of(project, "random", "test")
    blocks = machines().frame["block"]
    row = next(row for row in tested if (blocks == blocks[row]).sum() > 1)
    path = project / "splits" / "random.parquet"
    rewrite(path, lambda frame: frame.assign(fold_0=frame["fold_0"].where(frame.index != row, "train")))


def copy_a_configuration(project):
    features = [column.name for column in COLUMNS if column.role is Role.FEATURE]
    tested, trained = rows_of(project, "random", "test")[0], rows_of(project, "random", "train")[0]

    def copy(frame, columns):
        frame.loc[tested, features] = frame.loc[trained, features]
        return frame, columns

    change_table(project, copy)


def train_on_the_future(project):
    def learn(frame):
        tested = machines().frame["published"].where(frame["fold_0"] == "test")
        frame.loc[tested.nlargest(6).index, "fold_0"] = "train"

    rewrite(project / "splits" / "forward_2023.parquet", learn)


def predict_a_training_row(project):
    trained = machines().frame["id"][rows_of(project, "random", "train")[0]]
    path = project / "runs" / "random" / "ridge" / "predictions.parquet"
    rewrite(path, lambda frame: frame.assign(row=[trained, *frame["row"][1:]]))


def backtest_on_test_rows(project):
    tested = machines().frame["id"][rows_of(project, "forward_2023", "test")[:4]]
    path = project / "runs" / "forward_2023" / "nearest" / "backtest.parquet"
    rewrite(path, lambda frame: frame.assign(row=[*tested, *frame["row"][4:]]))


def know_the_scores_of_the_month(project):
    path = project / "runs" / "rolling_2023" / "ridge" / "predictions.parquet"
    rewrite(path, lambda frame: frame.assign(predicted=np.sqrt(frame["predicted"] * frame["measured"])))


def declare_provenance_a_feature(project):
    change_table(project, lambda frame, columns: (frame, as_feature(columns, "peak")))


def read_provenance_in_a_model(project):
    path = project / "runs" / "random" / "ridge" / "model" / "predictor.json"
    about = json.loads(path.read_text())
    for column in about["columns"]:
        column["role"] = "feature" if column["name"] == "peak" else column["role"]
    path.write_text(json.dumps(about))
    record_digests(path.parent)


FOLDS = "both in train or validation and in test"


@pytest.mark.parametrize(
    "leaks",
    [
        [
            (copy_a_configuration, "split rules", f"1 feature vectors {FOLDS}"),
            (predict_a_training_row, "test rows", "ridge on random: 1 predictions of rows that are not test rows of"),
            (None, "test rows", "1 measured scores are not those"),
            (backtest_on_test_rows, "backtest rows", "nearest on forward_2023: 4 backtest rows are test rows"),
            (know_the_scores_of_the_month, "rolling dates", "ridge on rolling_2023"),
        ],
        [
            (split_a_block, "split rules", f"random: fold_0: 1 blocks {FOLDS}"),
            (train_on_the_future, "split rules", "not known before 2023-01"),
            (None, "future dates", "6 training rows have published in or after 2023-"),
            (declare_provenance_a_feature, "column roles", "peak is provenance in the standard table and a feature"),
        ],
        [
            (read_provenance_in_a_model, "column roles", "reads peak, which the table declares provenance"),
        ],
    ],
    ids=["runs", "folds", "models and columns"],
)
def test_planted_leaks_are_reported(project, capsys, leaks):
    for plant in filter(None, [plant for plant, _, _ in leaks]):
        plant(project)
    refused(project, capsys, *((check, words) for _, check, words in leaks))


def test_gains_announced_after_training_ended(project, capsys):
    model = project / "runs" / "forward_2023" / "ridge" / "model"

    def announce(until):
        gains = {"terms": {"clock_gains": announced_index(pd.Timestamp(until))}}
        write_json(model / "analytical" / "analytical.json", gains)
        record_digests(model)

    announce("2021-12-01")
    assert run_checks(project, capsys)[0] == 0
    announce("2024-12-01")
    refused(project, capsys, ("announcements", "ridge on forward_2023: "), ("announcements", "announced by 2022-"))
