"""Recording while something else goes wrong: stores that fail during a training, killed recorders, two at once."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient
from recorded_results import make_recordable, record, recorded_runs, write_run

from perfcast import tracking
from perfcast.tracking.live import live_record
from perfcast.utils.io import sha256


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_recordable(tmp_path_factory.mktemp("original") / "project")


@pytest.fixture
def project(original, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Path(shutil.copytree(original, tmp_path / "a project"))


def test_store_that_fails_while_a_training_runs_costs_lines_alone(project, capsys):
    """The training of every run does not open the store; this is one whose curves are watched."""
    results = project / "results"
    folder = results / "mlflow"
    store = tracking.Store(f"sqlite:///{folder}/mlflow.db", folder / "artifacts", "now", live=True)
    with live_record(store, "perfcast/demo", "ridge-random", {"split": "random"}) as live:
        for epoch in range(4):
            if epoch == 2:
                capsys.readouterr()
                shutil.rmtree(folder)
            began = time.monotonic()
            live.log_metrics({"epoch": epoch, "train_loss": 1.0})
            assert time.monotonic() - began < 30, "no long silence, on a busy machine"
        live.name_record(sha256(write_run(results, "random", mape=8.0) / "record.json"))
    output = capsys.readouterr().err
    assert "Traceback" not in output
    lines = output.splitlines()
    assert len(lines) <= 2 and all("the results are kept" in line for line in lines)
    command = [sys.executable, "-m", "perfcast", "pipeline", "record"]
    done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    # not by MLflow: its connections of this process are to the file that was deleted
    with closing(sqlite3.connect(folder / "mlflow.db")) as base:
        complete = "select run_uuid from runs where status = 'FINISHED' and lifecycle_stage = 'active'"
        rows = base.execute(f"select value from latest_metrics where key = 'mape' and run_uuid in ({complete})")
        assert rows.fetchall() == [(8.0,)]


KILLED = """
import os, signal, sys
from mlflow import MlflowClient
call, left = sys.argv.pop(1), int(sys.argv.pop(1))
real = getattr(MlflowClient, call)
def killing(*arguments, **options):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)
setattr(MlflowClient, call, killing)
from perfcast.cli.main import main
main(["pipeline", "record"])
"""


def test_recorder_killed_half_way_records_each_training_once_later(project):
    write_run(project / "results", "unseen")
    killed = subprocess.run([sys.executable, "-c", KILLED, "log_batch", "3"], cwd=project, check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL
    assert record(project) == 0
    assert recorded_runs(project) == ["FINISHED"] * 2
    client = MlflowClient(f"sqlite:///{project}/results/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("perfcast/demo").experiment_id
    assert sorted(model.name for model in client.search_logged_models([experiment])) == ["ridge-random", "ridge-unseen"]


def test_results_of_the_future_are_recorded(project):
    later = time.time() + 2 * 86400
    os.utime(project / "results" / "runs" / "demo" / "random" / "ridge" / "record.json", (later, later))
    assert record(project) == 0
    assert record(project) == 0
    assert recorded_runs(project) == ["FINISHED"]


def test_damaged_configuration_costs_a_line(project, capsys):
    (project / "conf" / "tracking" / "default.yaml").write_text("uri: [")
    assert record(project, "--note", str(project / "note.txt")) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "NOT recorded" in line
