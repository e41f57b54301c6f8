"""Leakage checks of columns: features that encode the score, provenance columns, gains announced too late."""

import json

import numpy as np
import pandas as pd
import pytest
from leakage_project import (
    as_feature,
    change_table,
    copied,
    refused,
    run_checks,
)

from perfcast.domains.servers.processors.announcements import announced_index
from perfcast.utils.io import write_json


@pytest.fixture
def project(tmp_path):
    return copied(tmp_path)


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("note", lambda score: score),
        ("note", lambda score: -np.sqrt(score)),
        ("note", lambda score: (np.log(score) - 5.0) ** 2 + 1e-3 * score),
        ("os", lambda score: score.round(1).astype(str)),
    ],
    ids=["copy", "falling", "neither rising nor falling", "text"],
)
def test_feature_that_encodes_the_score_is_reported(project, capsys, name, encode):
    def plant(frame, columns):
        frame[name] = encode(frame["score"])
        return frame, columns

    change_table(project, plant)
    refused(project, capsys, "encoded target", f"{name} leaves", "of a constant's error in")


def test_feature_pair_that_encodes_the_score_is_reported(project, capsys):
    def plant(frame, columns):
        frame["note"] = frame["memory_gb"] ** 2 / frame["score"]
        return frame, columns

    change_table(project, plant)
    refused(project, capsys, "encoded target", "memory_gb with note leaves 0.0 %")


def test_provenance_column_as_feature_is_reported(project, capsys):
    change_table(project, lambda frame, columns: (frame, as_feature(columns, "peak")))
    refused(project, capsys, "column roles", "peak is provenance in the standard table and a feature")


def test_model_with_a_provenance_column_is_reported(project, capsys):
    path = project / "runs" / "random" / "ridge" / "model" / "predictor.json"
    about = json.loads(path.read_text())
    about["columns"] = [
        {**column, "role": "feature"} if column["name"] == "peak" else column for column in about["columns"]
    ]
    path.write_text(json.dumps(about))
    refused(project, capsys, "column roles", "ridge on random reads peak, which the table declares provenance")


def test_gains_announced_after_training_ended(project, capsys):
    model = project / "runs" / "forward_2023" / "ridge" / "model" / "analytical" / "analytical.json"
    write_json(model, {"terms": {"clock_gains": announced_index(pd.Timestamp("2021-12-01"))}})
    assert run_checks(project, capsys)[0] == 0
    write_json(model, {"terms": {"clock_gains": announced_index(pd.Timestamp("2024-12-01"))}})
    refused(project, capsys, "announcements", "ridge on forward_2023: ", "gains not announced by 2022-")
