"""The record: complete, and safe under parallel jobs."""

import signal
import subprocess
import sys

import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.entities import Dataset

from perfcast import tracking
from perfcast.tracking.live import live_record
from perfcast.tracking.run import start_run


def store_in(folder, invocation="now"):
    return tracking.Store(f"sqlite:///{folder}/mlflow/mlflow.db", folder / "mlflow" / "artifacts", invocation)


def start(folder, name, tags):
    store = store_in(folder)
    return start_run(tracking.open_client(store), store, "perfcast/demo", name, tags)


JOB = """
import sys
from pathlib import Path
from mlflow.entities import Dataset
from perfcast import tracking
from perfcast.tracking.run import start_run
folder, number = Path(sys.argv[1]), sys.argv[2]
store = tracking.Store(f"sqlite:///{folder}/mlflow/mlflow.db", folder / "mlflow" / "artifacts", "now")
run = start_run(tracking.open_client(store), store, "perfcast/demo", f"job {number}", {"job": number})
run.log_dataset(Dataset("shared", "1" * 36, "local", "table.parquet"), "test")
for step in range(20):
    run.log_metrics({"loss": float(step), "other": 1.0}, step)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One store for the tests that can share it: making its tables takes seconds."""
    return tmp_path_factory.mktemp("store")


@pytest.mark.faults
@pytest.mark.reliability("tracking store deleted, empty or locked for a while")
def test_parallel_jobs_lose_no_record(folder):
    jobs = [subprocess.Popen([sys.executable, "-c", JOB, str(folder), str(number)]) for number in range(3)]
    assert [job.wait(timeout=120) for job in jobs] == [0, 0, 0]
    client = MlflowClient(store_in(folder).uri)
    experiment = client.get_experiment_by_name("perfcast/demo")
    runs = client.search_runs([experiment.experiment_id], "tags.job LIKE '%'")
    assert len(runs) == 3
    for run in runs:
        assert [m.value for m in client.get_metric_history(run.info.run_id, "loss")] == list(map(float, range(20)))
    assert {run.data.tags["perfcast.invocation"] for run in runs} == {"now"}


def test_training_that_fails_is_marked_as_failed(folder):
    with (
        pytest.raises(RuntimeError),
        live_record(store_in(folder), "perfcast/fail", "broken", {}) as live,
    ):
        raise RuntimeError
    assert MlflowClient(store_in(folder).uri).get_run(live.run.run_id).info.status == "FAILED"


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
store = tracking.Store(f"sqlite:///{folder}/mlflow/mlflow.db", folder / "mlflow" / "artifacts", "kill")
tracking.open_client(store)
"""


@pytest.mark.reliability("tracking store deleted, empty or locked for a while")
def test_killed_creation_leaves_no_store(tmp_path):
    process = subprocess.run([sys.executable, "-c", MAKER, str(tmp_path)], check=False, timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "mlflow" / "mlflow.db").exists()
    assert start(tmp_path, "next", {}).run_id
    assert {path.name for path in (tmp_path / "mlflow").iterdir()} == {"artifacts", "mlflow.db", "store.lock"}


def test_run_records_params_curves_and_datasets(folder):
    history = pd.DataFrame(
        {"seed": [0, 0, 1], "fold": [0, 0, 0], "epoch": [0, 1, 0], "validation_loss": [3.0, 2.0, 9.0]}
    )
    run = start(folder, "run", {"split": "random"})
    run.log_params({"d_token": 64})
    run.log_history(history)
    run.log_metrics({"mape": 1.5, "nothing": float("nan")})
    run.log_dataset(Dataset("demo-random", "0" * 36, "local", "table.parquet"), "test")
    client = MlflowClient(store_in(folder).uri)
    got = client.get_run(run.run_id)
    assert got.data.params == {"d_token": "64"}
    assert got.data.metrics == {
        "curve/validation_loss": 2.0,
        "curve_seed1_fold0/validation_loss": 9.0,
        "mape": 1.5,
    }
    assert [m.step for m in client.get_metric_history(run.run_id, "curve/validation_loss")] == [0, 1]
    assert got.inputs.dataset_inputs[0].dataset.name == "demo-random"


def test_store_from_prefers_the_environment(tmp_path):
    conf = {"uri": "sqlite:///results/mlflow/mlflow.db", "artifacts": "results/mlflow/artifacts", "enabled": True}
    assert tracking.store_from(conf, tmp_path, {}).uri == f"sqlite:///{tmp_path}/results/mlflow/mlflow.db"
    elsewhere = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:5000"}
    assert tracking.store_from(conf, tmp_path, elsewhere).uri == "http://127.0.0.1:5000"
    assert tracking.store_from(conf, tmp_path, elsewhere).place("demo") is None, "a server decides"
    assert tracking.store_from({**conf, "enabled": False}, tmp_path, elsewhere) is None


def test_artifact_location_follows_the_environment(tmp_path):
    conf = {"uri": "sqlite:///mlflow.db", "artifacts": "artifacts"}
    places = {
        "": (tmp_path / "artifacts" / "demo").as_uri(),
        "other": (tmp_path / "other" / "demo").as_uri(),
        "s3://bucket/of/mine/": "s3://bucket/of/mine/demo",
    }
    for variable, expected in places.items():
        assert tracking.store_from(conf, tmp_path, {"PERFCAST_ARTIFACTS": variable}).place("demo") == expected
