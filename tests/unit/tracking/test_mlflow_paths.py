"""MLflow's store in a project that was moved, and in one that was copied."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from perfcast import tracking
from perfcast.predictors.linear import Ridge
from perfcast.tracking.client import rewrite_moved
from perfcast.tracking.models import log_predictor, register_champion


def store_in(project):
    return tracking.Store(f"sqlite:///{project}/mlflow.db", project / "artifacts", "now")


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
    store = store_in(folder)
    with tracking.start_run(store, "perfcast/demo", "job", {}) as run:
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
    with tracking.start_run(store_in(moved), "perfcast/demo", "another", {}) as run:
        run.log_artifacts(moved / "note.txt")
    assert not folder.exists()
    assert rewrite_moved(moved / "mlflow.db", moved / "artifacts") == 0


def files_below(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


def test_copied_project_writes_into_its_own_folder(project, tmp_path):
    folder, run_id = project
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    before = files_below(folder / "artifacts")
    assert loaded(copy, run_id) == ("kept", 1)
    assert folder.as_uri() not in "".join(sqlite3.connect(copy / "mlflow.db").iterdump())
    with tracking.start_run(store_in(copy), "perfcast/demo", "another", {}) as run:
        run.log_artifacts(copy / "note.txt")
    assert files_below(folder / "artifacts") == before
    assert list((copy / "artifacts").rglob(f"{run.run_id}/artifacts/note.txt"))
    assert loaded(folder, run_id) == ("kept", 1), "the original's record is untouched"


def test_copy_without_artifacts_reads_those_of_the_original(project, tmp_path):
    folder, run_id = project
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(folder / "mlflow.db", copy)
    assert loaded(copy, run_id) == ("kept", 1)
    with tracking.start_run(store_in(copy), "perfcast/demo", "another", {}) as run:
        run.log_artifacts(folder / "note.txt")
    assert list((copy / "artifacts").rglob(f"{run.run_id}/artifacts/note.txt"))


def test_database_elsewhere_keeps_the_addresses_of_present_folders(project, tmp_path):
    folder, _ = project
    assert rewrite_moved(folder / "mlflow.db", tmp_path / "another project" / "artifacts") == 0


def test_store_without_experiments_is_unchanged(tmp_path):
    sqlite3.connect(tmp_path / "new.db").close()
    assert rewrite_moved(tmp_path / "new.db", tmp_path / "artifacts") == 0
    (tmp_path / "no.db").write_text("this is no database, and long enough to be read as one" * 20)
    with pytest.raises(sqlite3.DatabaseError):
        rewrite_moved(tmp_path / "no.db", tmp_path / "artifacts")
