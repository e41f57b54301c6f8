"""The record: a training that fails, a store whose creation is killed, and where the store is."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from mlflow import MlflowClient

from perfcast import tracking
from perfcast.tracking.live import live_record
from perfcast.tracking.run import start_run


def store_in(project):
    return tracking.Store(f"sqlite:///{project}/mlflow.db", project / "artifacts", "now")


def start_in(project, name):
    store = store_in(project)
    return start_run(tracking.open_client(store), store, "perfcast/demo", name, {})


def test_training_that_fails_is_marked_as_failed(tmp_path):
    with pytest.raises(RuntimeError), live_record(store_in(tmp_path), "perfcast/fail", "broken", {}) as live:
        raise RuntimeError
    assert MlflowClient(store_in(tmp_path).uri).get_run(live.run.run_id).info.status == "FAILED"


MAKER = """
import os, signal, sys
from pathlib import Path
from perfcast import tracking
folder = Path(sys.argv[1])
from alembic.ddl.impl import DefaultImpl
made = DefaultImpl.create_table
def create_table(self, table, **options):
    made(self, table, **options)
    if table.name == "datasets":
        os.kill(os.getpid(), signal.SIGKILL)
DefaultImpl.create_table = create_table
store = tracking.Store(f"sqlite:///{folder}/mlflow.db", folder / "artifacts", "kill")
tracking.open_client(store)
"""


def test_killed_creation_leaves_no_store(tmp_path):
    process = subprocess.run([sys.executable, "-c", MAKER, str(tmp_path)], check=False, timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "mlflow.db").exists()
    assert start_in(tmp_path, "next").run_id
    assert {path.name for path in tmp_path.iterdir()} == {"artifacts", "mlflow.db", "store.lock"}


def test_store_from_prefers_the_environment(tmp_path):
    conf = {"uri": "sqlite:///results/mlflow/mlflow.db", "artifacts": "results/mlflow/artifacts", "enabled": True}
    assert tracking.store_from(conf, tmp_path, {}).uri == f"sqlite:///{tmp_path}/results/mlflow/mlflow.db"
    elsewhere = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:5000"}
    assert tracking.store_from(conf, tmp_path, elsewhere).uri == "http://127.0.0.1:5000"
    assert tracking.store_from(conf, tmp_path, elsewhere).place("demo") is None, "a server decides"
    assert tracking.store_from({**conf, "enabled": False}, tmp_path, elsewhere) is None
    places = {"": (tmp_path / "results" / "mlflow" / "artifacts" / "demo").as_uri(), "s3://my/": "s3://my/demo"}
    places["other"] = (tmp_path / "other" / "demo").as_uri()
    for variable, expected in places.items():
        assert tracking.store_from(conf, tmp_path, {"PERFCAST_ARTIFACTS": variable}).place("demo") == expected
