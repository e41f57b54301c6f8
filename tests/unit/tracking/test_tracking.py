"""The record: complete, closed, and safe under parallel jobs."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from mlflow import MlflowClient

from perfcast import tracking
from perfcast.tracking import lifecycle as processes


def store_in(folder, invocation="now"):
    return tracking.Store(f"sqlite:///{folder}/mlflow/mlflow.db", folder / "mlflow" / "artifacts", invocation)


JOB = """
import sys
from pathlib import Path
from perfcast import tracking
folder, number = Path(sys.argv[1]), sys.argv[2]
store = tracking.Store(f"sqlite:///{folder}/mlflow/mlflow.db", folder / "mlflow" / "artifacts", "now")
with tracking.start_run(store, "perfcast/demo", f"job {number}", {"job": number}) as run:
    run.log_dataset(tracking.DatasetEntry("shared", "1" * 36, "table.parquet"), "test")
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
        assert run.info.status == "FINISHED"
        assert [m.value for m in client.get_metric_history(run.info.run_id, "loss")] == list(map(float, range(20)))
    assert {run.data.tags["perfcast.invocation"] for run in runs} == {"now"}


def test_start_run_marks_errors_as_failed(folder):
    with (
        pytest.raises(RuntimeError),
        tracking.start_run(store_in(folder), "perfcast/fail", "broken", {}) as run,
    ):
        raise RuntimeError
    assert MlflowClient(store_in(folder).uri).get_run(run.run_id).info.status == "FAILED"


SLEEPER = """
import sys, time
from pathlib import Path
from perfcast import tracking
folder = Path(sys.argv[1])
store = tracking.Store(f"sqlite:///{folder}/mlflow/mlflow.db", folder / "mlflow" / "artifacts", "kill")
with tracking.start_run(store, "perfcast/kill", "sleeper", {}) as run:
    print(run.run_id, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_runs_are_closed(folder, number):
    process = subprocess.Popen([sys.executable, "-c", SLEEPER, str(folder)], stdout=subprocess.PIPE, text=True)
    run_id = process.stdout.readline().strip()
    os.kill(process.pid, number)
    process.wait(timeout=30)
    # the next run, of whatever experiment, sweeps up what a SIGKILL left
    with tracking.start_run(store_in(folder, "later"), "perfcast/another", "next", {}):
        time.sleep(0)
    assert MlflowClient(store_in(folder).uri).get_run(run_id).info.status == "KILLED"


def test_is_gone_needs_the_same_machine(monkeypatch):
    name = processes.process_name(os.getpid())
    boot, pid, started, machine = name.split(":")
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as other:
        alive = processes.process_name(other.pid)
        assert not processes.is_gone(alive)
        other.stdin.close()
    assert processes.is_gone(alive)
    assert not processes.is_gone(name)
    assert processes.is_gone(f"{boot}:{pid}:1{started}:{machine}"), "the number belongs to another process by now"
    assert not processes.is_gone(f"{boot}:{other.pid}:{started}:anothermachine"), "a container has its own numbers"
    assert not processes.is_gone(f"another:{pid}:{started}"), "a name without the machine"
    assert processes.is_gone(f"{boot}:{other.pid}:{started}")
    assert not processes.is_gone("")
    monkeypatch.setattr(processes, "_machine_digest", lambda: "thisone")
    assert processes.is_gone(f"another:{pid}:{started}:thisone"), "a power loss ends a run as well"
    assert not processes.is_gone(f"another:{pid}:{started}:anothermachine")


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
    with tracking.start_run(store_in(tmp_path), "perfcast/demo", "next", {}) as run:
        assert run.run_id
    assert {path.name for path in (tmp_path / "mlflow").iterdir()} == {"artifacts", "mlflow.db", "store.lock"}


def test_run_records_params_curves_and_datasets(folder):
    history = pd.DataFrame(
        {"seed": [0, 0, 1], "fold": [0, 0, 0], "epoch": [0, 1, 0], "validation_loss": [3.0, 2.0, 9.0]}
    )
    with tracking.start_run(store_in(folder), "perfcast/log", "run", {"split": "random"}) as run:
        run.log_params({"d_token": 64})
        run.log_history(history)
        run.log_metrics({"mape": 1.5, "nothing": float("nan")})
        run.log_dataset(tracking.DatasetEntry("demo-random", "0" * 36, "table.parquet"), "test")
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
