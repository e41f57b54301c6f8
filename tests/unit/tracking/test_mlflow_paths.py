"""MLflow's store in a project that was moved, and in one that was copied."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from perfcast import tracking
from perfcast.predictors.linear import Ridge
from perfcast.tracking.recording import log_predictor, register_champion
from perfcast.tracking.run import start_run


def store_in(project):
    return tracking.Store(f"sqlite:///{project}/mlflow.db", project / "artifacts", "now")


def start(project, name):
    store = store_in(project)
    return start_run(tracking.open_client(store), store, "perfcast/demo", name, {})


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a folder, with a blank in its name, that holds a store with a run, a model and a registered one."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"):  # MLflow sets them: forget them after the test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    folder = tmp_path / "first place"
    folder.mkdir()
    X = pd.DataFrame({"cores": [1.0, 2.0, 4.0, 8.0] * 4})
    predictor = Ridge().fit(X, X["cores"].rename("score"))
    predictor.save(folder / "model")
    (folder / "note.txt").write_text("kept")
    run = start(folder, "job")
    run.log_artifacts(folder / "note.txt")
    model = log_predictor(run, "ridge-random", folder / "model", X, {})
    register_champion(run, "demo", model, {}, "a description")
    return folder, run.run_id


def loaded(project, run_id):
    import mlflow

    client = tracking.open_client(store_in(project))
    path = Path(client.download_artifacts(run_id, "note.txt"))
    mlflow.set_tracking_uri(client.tracking_uri)
    mlflow.set_registry_uri(client.tracking_uri)
    model = mlflow.pyfunc.load_model("models:/perfcast-demo@champion")
    return path.read_text(), len(model.predict(pd.DataFrame({"cores": [3.0]})))


def test_moved_project_finds_its_artifacts(project, tmp_path):
    folder, run_id = project
    moved = tmp_path / "second place"
    folder.rename(moved)
    assert loaded(moved, run_id) == ("kept", 1)
    assert str(folder.name) not in "".join(sqlite3.connect(moved / "mlflow.db").iterdump()).replace("%20", " "), (
        "no address of the old folder is left"
    )
    start(moved, "another").log_artifacts(moved / "note.txt")
    assert not folder.exists()


def files_below(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


def test_copied_project_writes_into_its_own_folder(project, tmp_path):
    folder, run_id = project
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    before = files_below(folder / "artifacts")
    assert loaded(copy, run_id) == ("kept", 1)
    assert folder.as_uri() not in "".join(sqlite3.connect(copy / "mlflow.db").iterdump())
    run = start(copy, "another")
    run.log_artifacts(copy / "note.txt")
    assert files_below(folder / "artifacts") == before
    assert list((copy / "artifacts").rglob(f"{run.run_id}/artifacts/note.txt"))
    assert loaded(folder, run_id) == ("kept", 1), "the original's record is untouched"
