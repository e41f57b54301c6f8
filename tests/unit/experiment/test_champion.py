"""Which splits count when the champion is chosen, and whose tuned values a learning-curve split takes."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
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


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(PROJECT / "conf", folder / "conf")
    shutil.copy(PROJECT / "params.yaml", folder)
    tracking = folder / "conf" / "tracking" / "default.yaml"
    tracking.write_text(tracking.read_text().replace("enabled: true", "enabled: false"))
    write_table(fake_table(rows=200, seed=0), folder / "table.parquet")
    return folder


def champion(project, *names, **about_source):
    sources = read_dataset(PROJECT / "conf", "perfcastdb").sources
    for source in (*sources.required, *sources.optional):
        write_json(project / "raw" / source / "manifest.json", {"status": "missing", **about_source})
    for split, errors in INNER.items():
        for predictor, error in errors.items():
            write_json(project / "inner" / split / predictor / "validation.json", {"validation_mape": error})
    places = {"runs": "inner", "table": "table.parquet", "standard": "table.parquet", "raw": "raw", "out": "champion"}
    options = [word for name, place in places.items() for word in (f"--{name}", str(project / place))]
    chosen = ["--splits", *names, "--predictors", "nearest", "ridge", "--preset", "quick", "--project", str(project)]
    assert main(["pipeline", "champion", "perfcastdb", *options, *chosen]) == 0
    return json.loads((project / "champion" / "about.json").read_text())


def test_choose_champion_ignores_leaking_and_learning_curve_splits(project):
    about = champion(project, *INNER)
    assert about["predictor"] == "ridge"
    assert set(about["validation_mape"]) == {"random", "forward_last"}
    assert about["splits_not_counted"] == ["shuffled", "random_05_percent"]
    about = champion(project, "shuffled")
    assert (about["predictor"], about["validation_mape"]) == ("nearest", {}), "the first, where no split counts"
    assert "leaks on purpose" in about["chosen_by"]


def test_a_champion_carries_the_notice_of_its_dataset_and_the_source_of_its_results(project, tmp_path):
    conf = project / "conf" / "dataset" / "perfcastdb.yaml"
    conf.write_text(f"{conf.read_text()}notice: it retires on a day\n")
    about = champion(project, "random", homepage="https://results.example", retrieved="2026-03")
    assert about["notice"] == "it retires on a day"
    assert (about["source"], about["retrieved"]) == ("https://results.example", "2026-03")


def test_a_learning_curve_split_is_trained_with_the_values_tuned_for_its_base(project, monkeypatch):
    entry = {"splits": ["forward_2024"], "command": "c", "folds": [{"clip": 7.5}]}
    (project / "conf" / "tuned" / "spec_cpu2017" / "ridge.yaml").write_text(yaml.safe_dump({"entries": [entry]}))
    table = ["--table", str(project / "table.parquet")]

    def settings(name, preset):
        folds, out = project / f"{name}.parquet", project / "runs" / preset / name
        assert main(["pipeline", "split", name, *table, "--out", str(folds)]) == 0
        values = {"split": name, "table": project / "table.parquet", "folds": folds, "out": out, "preset": preset}
        words = [f"{key}={value}" for key, value in {"dataset": "spec_cpu2017", "predictor": "ridge", **values}.items()]
        monkeypatch.chdir(project)
        assert main(["pipeline", "train", *words]) == 0
        return yaml.safe_load((out / "config.yaml").read_text())["predictor"]["settings"]

    (setting,) = settings("forward_2024_last_2_years", "full")
    assert setting["tuned"]["clip"] == 7.5
    assert setting == settings("forward_2024", "full")[0]
    assert "tuned" not in settings("forward_2024_last_2_years", "quick")
    assert "tuned" not in settings("forward_2023_last_2_years", "full")
    folds = (pd.read_parquet(project / f"{name}.parquet") for name in ("forward_2024_last_2_years", "forward_2024"))
    assert [each.attrs for each in folds] == [{"base": "forward_2024", "split_version": 1}, {"split_version": 1}]


def test_choose_champion_of_shares_counts_points(tmp_path):
    errors = {"nearest": (0.02, 0.05), "ridge": (0.10, 0.04)}  # near 0 nearest is closer in per cent, ridge in points
    for predictor, (low, high) in errors.items():
        folder = tmp_path / "random" / predictor
        write_json(folder / "validation.json", {"validation_mape": 100 * low})
        lines = [(0, 0, 0.1, 0.1 + low / 10), (0, 0, 0.9, 0.9 + high), (1, 0, 0.5, 9.0), (0, 1, 0.5, 9.0)]
        frame = pd.DataFrame(lines, columns=["fold", "backtest", "measured", "predicted"])
        frame.to_parquet(folder / "backtest.parquet", write_page_checksum=True)
    chosen = select_champion(tmp_path, ["random"], ["nearest", "ridge"], are_shares=True)
    assert (chosen.predictor, chosen.metric) == ("ridge", "validation_mae")
    assert chosen.errors["random"]["ridge"] == pytest.approx(2.5)
    assert select_champion(tmp_path, ["random"], ["nearest", "ridge"]).predictor == "nearest"


def test_a_split_without_any_validation_error_does_not_count(tmp_path):
    errors = {
        ("random", "nearest"): 3.0,
        ("random", "ridge"): 2.0,
        ("other", "nearest"): None,
        ("other", "ridge"): None,
    }
    for (split, predictor), error in errors.items():
        folder = tmp_path / split / predictor
        folder.mkdir(parents=True)
        write_json(folder / "validation.json", {"validation_mape": error})
    assert select_champion(tmp_path, ["random", "other"], ["nearest", "ridge"]).predictor == "ridge"
