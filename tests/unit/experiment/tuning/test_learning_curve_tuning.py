"""A learning-curve split is trained with the values tuned for its base."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from generated_results import fake_table

from perfcast.cli.main import main
from perfcast.schema.table_files import write_table

PROJECT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(PROJECT / "conf", folder / "conf")
    shutil.copy(PROJECT / "params.yaml", folder)
    tracking = folder / "conf" / "tracking" / "default.yaml"
    tracking.write_text(tracking.read_text().replace("enabled: true", "enabled: false"))
    entry = {"splits": ["forward_2024"], "command": "c", "folds": [{"clip": 7.5}]}
    (folder / "conf" / "tuned" / "spec_cpu2017" / "ridge.yaml").write_text(yaml.safe_dump({"entries": [entry]}))
    write_table(fake_table(rows=300, seed=0), folder / "table.parquet")
    return folder


def split(project, name):
    path = project / f"{name}.parquet"
    assert main(["pipeline", "split", name, "--table", str(project / "table.parquet"), "--out", str(path)]) == 0
    return path


def settings(project, name, preset):
    out = project / "runs" / preset / name
    files = ["--table", str(project / "table.parquet"), "--folds", str(split(project, name)), "--out", str(out)]
    options = ["--preset", preset, "--project", str(project)]
    assert main(["pipeline", "train", "spec_cpu2017", name, "ridge", *files, *options]) == 0
    return yaml.safe_load((out / "config.yaml").read_text())["predictor"]["settings"]


def test_fold_file_names_the_base_of_a_learning_curve_split(project):
    assert pd.read_parquet(split(project, "forward_2024_last_2_years")).attrs == {
        "base": "forward_2024",
        "split_version": 1,
    }
    assert pd.read_parquet(split(project, "forward_2024")).attrs == {"split_version": 1}


def test_learning_curve_split_uses_tuned_values_of_its_base(project):
    (setting,) = settings(project, "forward_2024_last_2_years", "full")
    assert setting["tuned"]["clip"] == 7.5
    assert setting == settings(project, "forward_2024", "full")[0]
    assert "tuned" not in settings(project, "forward_2024_last_2_years", "quick")
    assert "tuned" not in settings(project, "forward_2023_last_2_years", "full")
