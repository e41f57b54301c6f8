"""Eight live trainings at once record in one sqlite store what they record one after the other."""

import json
import shutil
import subprocess
import sys

import pytest
from killing import tiny_project
from small_project import call, environment

pytestmark = pytest.mark.faults
PREDICTORS = ["nearest", "power_law", "ridge", "random_forest", "extra_trees", "lightgbm", "mlp", "group_pooling"]
ONE_AFTER_THE_OTHER = """
import json, sys
from perfcast.cli.main import main
for arguments in json.loads(sys.argv[1]):
    assert main(arguments) == 0
"""
RECORDER = """
import sys
from pathlib import Path
from perfcast import tracking
from perfcast.tracking.run import start_run
folder, number = Path(sys.argv[1]), sys.argv[2]
store = tracking.Store(f"sqlite:///{folder}/mlflow.db", folder / "artifacts", "now")
run = start_run(tracking.open_client(store), store, "perfcast/demo", f"job {number}", {"job": number})
for step in range(200):
    run.log_metrics({"loss": step + int(number) / 10, "other": 1.0}, step)
"""


def training(results, predictor):
    names = ["dataset=host_gemm", "split=random", f"predictor={predictor}", "preset=quick"]
    return ["pipeline", "train", *names, f"out={results}/runs/host_gemm/random/{predictor}"]


def recorded(store):
    """Return parameters and metric values of every run of a store, without times and ids."""
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{store}/mlflow.db")
    (experiment,) = [
        listed.experiment_id for listed in client.search_experiments() if listed.name.startswith("perfcast/")
    ]
    runs = client.search_runs([experiment], "tags.`perfcast.kind` = 'training'")
    assert {run.info.status for run in runs} == {"FINISHED"}
    return {
        run.info.run_name: (
            run.data.params,
            {
                name: sorted((metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, name))
                for name in run.data.metrics
            },
            sorted(artifact.path for artifact in client.list_artifacts(run.info.run_id)),
        )
        for run in runs
    }


@pytest.mark.reliability("tracking by several processes at once")
def test_parallel_trainings_record_the_same_as_sequential_ones(tmp_path):
    project = tiny_project(tmp_path / "project")
    call(project, "snakemake", "results/features/host_gemm.parquet", "results/splits/host_gemm/random.parquet")
    conf = project / "conf" / "tracking" / "default.yaml"
    conf.write_text(conf.read_text().replace("live: false", "live: true"))
    stores = {name: tmp_path / name for name in ("serial", "parallel")}
    settings = {
        name: environment(project)
        | {"MLFLOW_TRACKING_URI": f"sqlite:///{store}/mlflow.db", "PERFCAST_ARTIFACTS": str(store / "artifacts")}
        | {"PERFCAST_INVOCATION": "now"}
        for name, store in stores.items()
    }
    every = json.dumps([training("serial", name) for name in PREDICTORS])
    command = [sys.executable, "-c", ONE_AFTER_THE_OTHER, every]
    subprocess.run(command, check=True, cwd=project, env=settings["serial"], timeout=900)
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "perfcast", *training("parallel", name)],
            cwd=project,
            env=settings["parallel"],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in PREDICTORS
    ]
    output = "".join(job.communicate(timeout=900)[1] for job in jobs)
    assert [job.returncode for job in jobs] == [0] * len(jobs), output
    assert "locked" not in output and "the results are kept" not in output
    for name in stores:
        shutil.copytree(project / "results" / "features", project / name / "features")
        record = [sys.executable, "-m", "perfcast", "pipeline", "record", "--results", name]
        subprocess.run(record, check=True, cwd=project, env=settings[name], timeout=900)
    serial, parallel = recorded(stores["serial"]), recorded(stores["parallel"])
    assert len(serial) == len(PREDICTORS)
    assert {"training/train_loss", "training_live/train_loss"} <= set(serial["mlp-random"][1])
    assert parallel == serial


@pytest.mark.reliability("tracking by several processes at once")
def test_parallel_recording_loses_no_value(tmp_path):
    from mlflow import MlflowClient

    jobs = [
        subprocess.Popen([sys.executable, "-c", RECORDER, str(tmp_path), str(n)], stderr=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    output = "".join(job.communicate(timeout=900)[1] for job in jobs)
    assert [job.returncode for job in jobs] == [0] * 8, output
    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("perfcast/demo").experiment_id
    runs = client.search_runs([experiment], "tags.job LIKE '%'")
    assert len(runs) == 8
    for run in runs:
        values = [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, "loss")]
        assert sorted(values) == [(step, step + int(run.data.tags["job"]) / 10) for step in range(200)]
