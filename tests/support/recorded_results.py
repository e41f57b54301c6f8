"""Results of one small training, as `perfcast pipeline train` leaves them, in a project that records them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from unittest.mock import patch

import pandas as pd
from mlflow import MlflowClient

from perfcast.cli.main import main
from perfcast.predictors.linear import Ridge
from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.schema.table_files import write_table
from perfcast.utils.io import write_json

REPOSITORY = Path(__file__).parents[2]
COLUMNS = [Column("cores", Kind.NUMERICAL, Role.FEATURE, "cpu"), Column("score", Kind.NUMERICAL, Role.TARGET, "suite")]


def make_recordable(project: Path) -> Path:
    """Write the configuration, and the results of one training."""
    shutil.copytree(REPOSITORY / "conf", project / "conf")
    shutil.copy(REPOSITORY / "params.yaml", project)
    write_run(project / "results", "random")
    return project


def write_run(results: Path, split: str, mape: float = 7.000004) -> Path:
    """Write the folder of a training as `perfcast pipeline train` does, curves included."""
    frame = pd.DataFrame({"cores": [1.0, 2.0, 4.0, 8.0] * 4})
    frame["score"] = frame["cores"]
    write_table(build_table("demo", frame, COLUMNS), results / "features" / "demo.parquet")
    folder = results / "runs" / "demo" / split / "ridge"
    Ridge().fit(frame[["cores"]], frame["score"]).save(folder / "model")
    pd.DataFrame({"predicted": [1.0]}).to_parquet(folder / "predictions.parquet")
    curves = pd.DataFrame({"seed": [0, 0], "fold": [0, 0], "epoch": [1, 2], "train_loss": [2.0, 1.0]})
    curves.to_csv(folder / "history.csv", index=False)
    (folder / "config.yaml").write_text("preset: quick\n")
    record = {
        "dataset": "demo",
        "split": split,
        "predictor": "ridge",
        "curves": "history.csv",
        "model": "model",
        "parameters": {"alphas": "[1.0]", "preset": "quick"},
        "metrics": {"mape": mape, "medape": 5.0},
        "tags": {"preset": "quick", "code_digest": "1"},
        "rows": {"train": 12, "test": 4},
        "sha256": {"table": "1" * 64, "folds": split, "predictions": "2" * 64},
    }
    write_json(folder / "record.json", record)
    usage = results / "benchmarks" / "train" / "demo" / split / "ridge.tsv"
    usage.parent.mkdir(parents=True, exist_ok=True)
    usage.write_text("s\th:m:s\tmax_rss\n12.5\t0:00:12\t300.25\n")
    return folder


def record(project: Path, *options: str) -> int:
    """Call `perfcast pipeline record` and return its exit code, without the variables that MLflow sets."""
    with patch.dict(os.environ):
        return main(["pipeline", "record", "--project", str(project), "--results", str(project / "results"), *options])


def recorded_runs(project: Path) -> list[str]:
    """Return the states of the recorded trainings of a project's own store."""
    client = MlflowClient(f"sqlite:///{project}/results/mlflow/mlflow.db")
    experiments = [each.experiment_id for each in client.search_experiments()]
    return [run.info.status for run in client.search_runs(experiments, "tags.`perfcast.kind` = 'training'")]
