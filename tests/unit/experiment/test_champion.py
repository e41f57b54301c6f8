"""Which splits count when the champion is chosen."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from generated_results import fake_table

from perfcast.cli.main import main
from perfcast.config.dataset_conf import read_dataset
from perfcast.experiment.champion import select_champion
from perfcast.schema.table_files import write_table
from perfcast.utils.io import write_json

PROJECT = Path(__file__).parents[3]
# nearest is best where rows leak, and overall if that counted
INNER = {
    "shuffled": {"nearest": 0.01, "ridge": 9.0},
    "random_05_percent": {"nearest": 0.01, "ridge": 9.0},
    "random": {"nearest": 5.0, "ridge": 3.0},
    "forward_last": {"nearest": 12.0, "ridge": 8.0},
}


@pytest.fixture
def project(tmp_path):
    shutil.copytree(PROJECT / "conf", tmp_path / "conf")
    shutil.copy(PROJECT / "params.yaml", tmp_path)
    tracking = tmp_path / "conf" / "tracking" / "default.yaml"
    tracking.write_text(tracking.read_text().replace("enabled: true", "enabled: false"))
    write_table(fake_table(rows=200, seed=0), tmp_path / "table.parquet")
    sources = read_dataset(PROJECT / "conf", "spec_cpu2017_detail").sources
    for source in (*sources.required, *sources.optional):
        write_json(tmp_path / "raw" / source / "manifest.json", {"status": "missing"})
    for split, errors in INNER.items():
        for predictor, error in errors.items():
            folder = tmp_path / "runs" / split / predictor
            folder.mkdir(parents=True)
            (folder / "validation.json").write_text(json.dumps({"validation_mape": error}))
    return tmp_path


def champion(project, *splits):
    places = ["--runs", "runs", "--table", "table.parquet", "--standard", "table.parquet", "--raw", "raw"]
    places += ["--out", "champion", "--project", "."]
    places = [str(project / word) if not word.startswith("--") else word for word in places]
    chosen = ["--splits", *splits, "--predictors", "nearest", "ridge", "--preset", "quick"]
    assert main(["pipeline", "champion", "spec_cpu2017_detail", *places, *chosen]) == 0
    return json.loads((project / "champion" / "about.json").read_text())


def test_choose_champion_ignores_leaking_and_learning_curve_splits(project):
    about = champion(project, *INNER)
    assert about["predictor"] == "ridge"
    assert set(about["validation_mape"]) == {"random", "forward_last"}
    assert about["splits_not_counted"] == ["shuffled", "random_05_percent"]


def test_choose_champion_without_compared_splits_takes_the_first_predictor(project):
    about = champion(project, "shuffled")
    assert about["predictor"] == "nearest"
    assert "leaks on purpose" in about["chosen_by"]
    assert about["validation_mape"] == {}


def test_choose_champion_of_shares_counts_points(tmp_path):
    errors = {"nearest": (0.02, 0.05), "ridge": (0.10, 0.04)}  # near 0 nearest is closer in per cent, ridge in points
    for predictor, (low, high) in errors.items():
        folder = tmp_path / "random" / predictor
        folder.mkdir(parents=True)
        write_json(folder / "validation.json", {"validation_mape": 100 * low})
        lines = [(0, 0, 0.1, 0.1 + low / 10), (0, 0, 0.9, 0.9 + high), (1, 0, 0.5, 9.0), (0, 1, 0.5, 9.0)]
        frame = pd.DataFrame(lines, columns=["fold", "backtest", "measured", "predicted"])
        frame.to_parquet(folder / "backtest.parquet", write_page_checksum=True)
    chosen = select_champion(tmp_path, ["random"], ["nearest", "ridge"], are_shares=True)
    assert (chosen.predictor, chosen.metric) == ("ridge", "validation_mae")
    assert chosen.errors["random"]["ridge"] == pytest.approx(2.5)
    assert select_champion(tmp_path, ["random"], ["nearest", "ridge"]).predictor == "nearest"
