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


def replace_cells(path, column, values):
    def change(frame):
        for row, value in values.items():
            frame.loc[row, column] = value

    rewrite(path, change)


def split_a_block(project):
    tested = rows_of(project, "random", "test")
    blocks = machines().frame["block"]
    row = next(row for row in tested if (blocks == blocks[row]).sum() > 1)
    rewrite(
        project / "splits" / "random.parquet",
        lambda frame: frame.assign(fold_0=frame["fold_0"].where(frame.index != row, "train")),
    )


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
    rewrite(
        project / "runs" / "random" / "ridge" / "predictions.parquet",
        lambda frame: frame.assign(row=[trained, *frame["row"][1:]]),
    )


def backtest_on_test_rows(project):
    tested = machines().frame["id"][rows_of(project, "forward_2023", "test")[:4]]
    rewrite(
        project / "runs" / "forward_2023" / "nearest" / "backtest.parquet",
        lambda frame: frame.assign(row=[*tested, *frame["row"][4:]]),
    )


def swap_run_folders(project):
    runs = project / "runs" / "random"
    (runs / "nearest" / "config.yaml").write_text((runs / "ridge" / "config.yaml").read_text())


def declare_provenance_a_feature(project):
    change_table(project, lambda frame, columns: (frame, as_feature(columns, "peak")))


def read_provenance_in_a_model(project):
    path = project / "runs" / "random" / "ridge" / "model" / "predictor.json"
    about = json.loads(path.read_text())
    for column in about["columns"]:
        column["role"] = "feature" if column["name"] == "peak" else column["role"]
    path.write_text(json.dumps(about))
    record_digests(path.parent)


def encode(name, of):
    def plant(project):
        change_table(project, lambda frame, columns: (frame.assign(**{name: of(frame)}), columns))

    return plant


@pytest.mark.parametrize(
    ("plant", "check", "words"),
    [
        (split_a_block, "split rules", ["random: fold_0: 1 blocks both in train or validation and in test"]),
        (copy_a_configuration, "split rules", ["1 feature vectors both in train or validation and in test"]),
        (train_on_the_future, "future dates", ["6 training rows have published in or after 2023-"]),
        (train_on_the_future, "split rules", ["not known before 2023-01"]),
        (
            predict_a_training_row,
            "test rows",
            ["1 predictions of rows that are not test rows of the fold", "1 measured scores are not those"],
        ),
        (
            backtest_on_test_rows,
            "backtest rows",
            ["nearest on forward_2023: 4 backtest rows are test rows"],
        ),
        (swap_run_folders, "repeated runs", ["names generated/random/ridge"]),
        (declare_provenance_a_feature, "column roles", ["peak is provenance in the standard table and a feature"]),
        (
            read_provenance_in_a_model,
            "column roles",
            ["reads peak, which the table declares provenance"],
        ),
        (encode("note", lambda frame: frame["score"]), "encoded target", ["note leaves", "of a constant's error in"]),
        (encode("note", lambda frame: -np.sqrt(frame["score"])), "encoded target", ["note leaves"]),
        (
            encode("note", lambda frame: (np.log(frame["score"]) - 5.0) ** 2 + 1e-3 * frame["score"]),
            "encoded target",
            ["note leaves"],
        ),
        (encode("os", lambda frame: frame["score"].round(1).astype(str)), "encoded target", ["os leaves"]),
        (
            encode("note", lambda frame: frame["memory_gb"] ** 2 / frame["score"]),
            "encoded target",
            ["memory_gb with note leaves 0.0 %"],
        ),
    ],
)
def test_planted_leak_is_reported(project, capsys, plant, check, words):
    plant(project)
    refused(project, capsys, check, *words)


def test_gains_announced_after_training_ended(project, capsys):
    model = project / "runs" / "forward_2023" / "ridge" / "model"

    def announce(until):
        gains = {"terms": {"clock_gains": announced_index(pd.Timestamp(until))}}
        write_json(model / "analytical" / "analytical.json", gains)
        record_digests(model)

    announce("2021-12-01")
    assert run_checks(project, capsys)[0] == 0
    announce("2024-12-01")
    refused(project, capsys, "announcements", "ridge on forward_2023: ", "gains not announced by 2022-")
