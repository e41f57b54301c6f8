"""The protocol as a task for others: an export, submissions of runs and of an outsider, and bad submissions."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from finished_project import finished, inside

from perfcast.cli.main import main
from perfcast.evaluation import read_evaluation
from perfcast.schema.table import Role
from perfcast.schema.table_files import read_table
from perfcast.utils.io import sha256

METRICS = ["mape", "medape", "interval_score", "coverage"]
OUTSIDER = """
import sys
import numpy as np, pandas as pd
from sklearn.ensemble import RandomForestRegressor
from task import load_folds, make_submission

points, lows, highs = [], [], []
for fold in load_folds(".", "random"):
    numbers = [name for name in fold.X_train if pd.api.types.is_numeric_dtype(fold.X_train[name])]
    X, Y = fold.X_train[numbers].fillna(0), np.log(fold.y_train)
    forest = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, Y.to_numpy().ravel())
    test = fold.X_test[numbers].fillna(0)
    trees = np.stack([tree.predict(test.to_numpy()) for tree in forest.estimators_])
    for parts, values in ((points, trees.mean(0)), (lows, trees.min(0)), (highs, trees.max(0))):
        parts.append(pd.DataFrame(np.exp(values), fold.X_test.index, fold.y_train.columns))
made = make_submission(".", "random", *(pd.concat(parts) for parts in (points, lows, highs)))
made.assign(cpu_seconds=1.5).to_parquet("outsider.parquet", index=False)
assert "perfcast" not in sys.modules
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the exported task of the finished project, with the submissions of its runs and of an outsider."""
    out = tmp_path_factory.mktemp("task") / "task"
    with inside(finished()):
        options = ["--dataset", "host_gemm", "--splits", "random", "--runs", "ridge", "nearest", "--structure", "ridge"]
        assert main(["task", "export", *options, "--out", str(out)]) == 0
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", OUTSIDER], cwd=out, env=clean, check=True)
    return out


def score(*arguments: str | Path) -> int:
    """Run the command in the finished project."""
    with inside(finished()):
        return main(["task", "score", "--dataset", "host_gemm", "--resamples", "10", *map(str, arguments)])


def kit(task: Path):
    """Import task.py as an outsider does."""
    spec = importlib.util.spec_from_file_location("exported_task", task / "task.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["exported_task"] = module
    spec.loader.exec_module(module)
    return module


def test_submission_of_a_run_has_the_digits_of_the_evaluation(task, tmp_path):
    files = [task / "submissions" / "random" / f"{name}.parquet" for name in ("ridge", "nearest")]
    assert score(*files, "--against", "ridge", "--out", tmp_path / "board.csv") == 0
    board = pd.read_csv(tmp_path / "board.csv")
    metrics = read_evaluation(finished() / "results/evaluation/host_gemm").metrics
    keys = ["predictor", "task", "metric"]
    both = board.merge(metrics, on=keys, suffixes=("", "_run"))
    assert len(both) == len(board) == 2 * 4 * 4
    for name in ("value", "low", "high"):
        assert both[name].to_list() == pytest.approx(both[f"{name}_run"].to_list(), rel=6e-4)
    compared = board[(board["predictor"] == "nearest") & (board["metric"] == "mape") & (board["task"] == "average")]
    paired = read_evaluation(finished() / "results/evaluation/host_gemm").tables["paired"]
    row = paired.query("predictor == 'nearest' and against == 'best' and metric == 'mape' and task == 'average'")
    assert compared[["difference", "difference_low", "difference_high"]].to_numpy() == pytest.approx(
        row[["difference", "low", "high"]].to_numpy(), rel=6e-4
    )


def test_submission_of_an_outsider_has_equal_digits_in_both_scorers(task, tmp_path, capsys):
    assert score(task / "outsider.parquet", "--out", tmp_path / "board.csv") == 0
    assert "outsider" in capsys.readouterr().out
    board = pd.read_csv(tmp_path / "board.csv")
    assert (board["cpu_seconds"] == 1.5).all()
    table = board.pivot(index="task", columns="metric", values="value")[METRICS]
    expected = kit(task).score(task, pd.read_parquet(task / "outsider.parquet"))[METRICS]
    assert table.loc[expected.index].to_numpy() == pytest.approx(expected.to_numpy(), rel=6e-4)


def test_loader_gives_features_alone_and_no_test_scores(task):
    module = kit(task)
    table = read_table(finished() / "results/features/host_gemm.parquet")
    (fold,) = module.load_folds(task, "random")
    assert list(fold.X_train) == list(fold.X_test) == table.select(role=Role.FEATURE)
    assert not set(fold.y_train.index) & set(fold.X_test.index)
    assert list(fold.keys_test) == ["entity", "task"]
    assert fold.is_validation.any() and not fold.is_validation.all()
    assert fold.structure_train.index.equals(fold.y_train.index)
    lines = (task / "task.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    about = pd.read_json(task / "task.json", typ="series")
    assert about["splits"]["random"]["sha256"] == sha256(task / "splits" / "random.csv")


def test_multiple_seeds_are_averaged(task, tmp_path):
    frame = pd.read_parquet(task / "outsider.parquet")
    other = frame.assign(seed=1, point=1.1 * frame["point"])
    pd.concat([frame.assign(seed=0), other]).to_parquet(tmp_path / "both.parquet")
    other.to_parquet(tmp_path / "other.parquet")
    files = [tmp_path / "both.parquet", tmp_path / "other.parquet", task / "outsider.parquet"]
    assert score(*files, "--out", tmp_path / "board.csv") == 0
    board = pd.read_csv(tmp_path / "board.csv").query("metric == 'mape' and task == 'average'")
    values = board.set_index("predictor")["value"]
    assert values["both"] == pytest.approx((values["other"] + values["outsider"]) / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.iloc[1:], "must have all test rows of its split"),
        (lambda frame: pd.concat([frame, frame.iloc[:1]]), "must be unique"),
        (lambda frame: frame.assign(point=frame["point"].where(frame.index > 0)), "must be positive and finite"),
        (lambda frame: frame.assign(low=-1.0), "must be positive and finite"),
        (lambda frame: frame.assign(split_sha256="0" * 64), "split_sha256 of"),
        (lambda frame: frame.assign(low=frame["high"], high=frame["low"]), "must be at most high"),
        (lambda frame: frame.drop(columns="point"), "must have the column 'point'"),
        (lambda frame: frame.drop(columns="low"), "must have low and high"),
        (lambda frame: frame.assign(target="other"), "must have all test rows"),
        (lambda frame: frame.replace({"row": {frame["row"][0]: "none"}}), "must have all test rows"),
    ],
)
def test_bad_submissions_are_refused_in_one_line(task, tmp_path, capsys, change, message):
    change(pd.read_parquet(task / "outsider.parquet")).to_parquet(tmp_path / "bad.parquet")
    assert score(tmp_path / "bad.parquet") == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_files_that_are_no_submissions_are_refused(task, tmp_path, capsys):
    (tmp_path / "text.parquet").write_text("row,point\n1,2\n")
    assert score(tmp_path / "text.parquet") == 2
    assert "must be a Parquet file" in capsys.readouterr().err
    assert score(tmp_path / "none.parquet") == 2
    assert "there is no such file" in capsys.readouterr().err
    shutil.copyfile(task / "outsider.parquet", tmp_path / "outsider.parquet")
    assert score(task / "outsider.parquet", tmp_path / "outsider.parquet") == 2
    assert "two are outsider" in capsys.readouterr().err
    assert score(task / "outsider.parquet", "--against", "ridge") == 2
    assert "--against must be one of outsider" in capsys.readouterr().err


def test_export_refuses_what_is_no_task(tmp_path, capsys):
    with inside(finished()):
        start = ["task", "export", "--dataset", "host_gemm"]
        assert main([*start, "--splits", "rolling_2024", "--out", str(tmp_path / "new")]) == 2
        assert "take forward_2024" in capsys.readouterr().err
        assert main([*start, "--splits", "random", "--out", str(tmp_path)]) == 2
        assert "--out must be a new folder" in capsys.readouterr().err
        runs = ["--runs", "none"]
        assert main([*start, "--splits", "random", *runs, "--out", str(tmp_path / "new")]) == 2
        assert "--runs must be finished trainings" in capsys.readouterr().err
