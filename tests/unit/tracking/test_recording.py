"""Records of finished results: once each, with metrics of model and dataset, and never at the cost of a result."""

import errno
import json
import os
import shutil
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient
from recorded_results import make_recordable, write_run

from perfcast import tracking
from perfcast.cli.main import main
from perfcast.tracking.live import live_record
from perfcast.tracking.recording import record_results, requirements
from perfcast.utils.io import sha256

SCORES = {
    "demo": {
        split: {
            "ridge": {
                "average": {"mape": 7.0, "coverage": 91.0, "width": 30.0, "p90": 12.0, "r2": 0.9},
                "float": {"mape": 6.0},
            }
        }
        for split in ("random", "unseen")
    }
}


def record(folder, scores=SCORES, **options):
    store = tracking.Store(f"sqlite:///{folder}/mlflow/mlflow.db", folder / "mlflow" / "artifacts", "now")
    return record_results(store, folder, scores, **options)


def runs_of(folder):
    client = MlflowClient(f"sqlite:///{folder}/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("perfcast/demo").experiment_id
    return client, experiment, client.search_runs([experiment], "tags.`perfcast.kind` = 'training'")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Results of two trainings, recorded."""
    folder = tmp_path_factory.mktemp("recorded") / "results"
    for split in ("random", "unseen"):
        write_run(folder, split)
    assert record(folder) == 2
    return folder


@pytest.fixture
def results(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "results"))


def test_trainings_have_metrics_of_model_and_dataset(original):
    client, experiment, runs = runs_of(original)
    assert {run.info.run_name for run in runs} == {"ridge-random", "ridge-unseen"}
    for run in runs:
        metrics = {name: value for name, value in run.data.metrics.items() if not name.startswith("training/")}
        assert metrics == {
            "mape": 7.0,
            "mape/float": 6.0,
            "medape": 5.0,
            "coverage": 91.0,
            "width": 30.0,
            "p90": 12.0,
            "seconds": 12.5,
            "memory_mib": 300.25,
        }
        assert (run.data.metrics["training/train_loss"], run.data.params["alphas"]) == (1.0, "[1.0]")
        (data,) = run.inputs.dataset_inputs
        assert data.dataset.name == f"demo-{run.data.tags['split']}"
        assert "cores" in data.dataset.schema
        assert run.info.end_time - run.info.start_time == 12_500
        assert run.data.tags["mlflow.source.name"] == "perfcast pipeline train"
    tags = client.get_experiment(experiment).tags
    view = json.loads(tags["mlflow.sharedViewState.perfcast-split-unseen"])
    state = json.loads(view["state"])
    assert view["name"] == "split unseen" and "tags.`split` = 'unseen'" in state["searchFilter"]
    assert state["orderByKey"] == state["columnOrder"][0] == "metrics.`mape`"
    assert state["compareRunCharts"][0]["metricKey"] == "mape"
    models = {model.name: model for model in client.search_logged_models([experiment])}
    assert set(models) == {"ridge-random", "ridge-unseen"}
    for split in ("random", "unseen"):
        (mape,) = [metric for metric in models[f"ridge-{split}"].metrics if metric.key == "mape"]
        assert (mape.value, mape.dataset_name) == (7.0, f"demo-{split}")


def test_recording_again_completes_what_was_interrupted_updates_metrics_and_adds_nothing(results):
    before = {run.info.run_id: run.data.metrics for run in runs_of(results)[2]}
    assert record(results) == 0
    client, _, runs = runs_of(results)
    assert {run.info.run_id: run.data.metrics for run in runs} == before
    scores = json.loads(json.dumps(SCORES))
    scores["demo"]["random"]["ridge"]["average"]["coverage"] = 80.0
    assert record(results, scores) == 0
    coverage = {run.data.tags["split"]: run.data.metrics["coverage"] for run in runs_of(results)[2]}
    assert coverage == {"random": 80.0, "unseen": 91.0}
    client.update_run(runs[0].info.run_id, status="RUNNING")
    assert record(results) == 1
    client, experiment, runs = runs_of(results)
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    assert len(client.search_logged_models([experiment])) == 2


@pytest.mark.parametrize("age", [-1000.0, 1000.0], ids=["newer", "older"])
def test_changed_training_is_another_run_without_the_evaluation_of_the_old_one(results, age):
    write_run(results, "random", mape=9.0)
    date_evaluation(results, age)
    assert record(results) == 1
    runs = runs_of(results)[2]
    assert len(runs) == 3
    assert sorted(run.data.metrics["mape"] for run in runs) == [7.0, 7.0, 9.0]
    assert sorted("coverage" in run.data.metrics for run in runs) == [False, True, True]


def date_evaluation(results, age):
    """Let the evaluation seem so many seconds older than the trainings."""
    folder = results / "evaluation" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    moment = time.time() - age
    os.utime(folder, (moment, moment))


def test_clock_that_is_set_back_costs_no_metric(tmp_path):
    write_run(tmp_path, "random")
    date_evaluation(tmp_path, 1000.0)
    assert record(tmp_path) == 1
    assert [run.data.metrics["coverage"] for run in runs_of(tmp_path)[2]] == [91.0]


def test_live_run_becomes_the_record_of_its_training(results):
    folder = write_run(results, "random", mape=7.00002)
    store = tracking.Store(f"sqlite:///{results}/mlflow/mlflow.db", results / "mlflow" / "artifacts", "now", live=True)
    with live_record(store, "perfcast/demo", "ridge-random", {"split": "random"}) as live:
        for loss in (3.0, 2.0):
            live.log_metrics({"epoch": 1, "train_loss": loss})
        live.name_record(sha256(folder / "record.json"))
    run_id = live.run.run_id
    assert record(results) == 1
    client, _, runs = runs_of(results)
    assert len(runs) == 3
    stored = client.get_run(run_id)
    assert stored.data.metrics["mape"] == 7.0
    assert [m.value for m in client.get_metric_history(run_id, "training_live/train_loss")] == [3.0, 2.0]


@pytest.mark.parametrize("uri", ["sqlite:///{folder}/mlflow.db", "http://127.0.0.1:9"], ids=["garbage", "no server"])
def test_live_store_that_fails_costs_a_line(tmp_path, capsys, uri):
    (tmp_path / "mlflow.db").write_bytes(b"\xff no database" * 100)
    store = tracking.Store(uri.format(folder=tmp_path), tmp_path / "artifacts", "now", live=True)
    with live_record(store, "perfcast/demo", "ridge-random", {}) as live:
        assert live is None
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("perfcast: tracking: ") and "the results are kept" in line


@pytest.fixture
def project(tmp_path):
    return make_recordable(tmp_path / "project")


def test_note_that_cannot_be_written_is_one_line_and_leaves_no_file(project, capsys, monkeypatch):
    """The error comes from where such a disk raises it; the command still succeeds, since it records no result."""
    conf = project / "conf" / "tracking" / "default.yaml"
    conf.write_text(conf.read_text().replace("enabled: true", "enabled: false"))
    note, refused = project / "notes" / "note.txt", []
    note.parent.mkdir()
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refuse(path, *_, **__):
        refused.append(Path(path).parent)
        raise error

    monkeypatch.setattr("perfcast.utils.io.Path.write_text", refuse)
    command = ["pipeline", "record", "--project", str(project), "--results", str(project / "results")]
    code = main([*command, "--note", str(note)])
    monkeypatch.undo()
    assert code == 0
    assert capsys.readouterr().err.splitlines() == [
        "tracking: off: conf/tracking/default.yaml has enabled: false",
        f"tracking: {note} is not written: {type(error).__name__}: {error}",
    ]
    assert refused == [note.parent]
    assert not list(note.parent.iterdir())
    assert main([*command, "--note", str(note)]) == 0
    assert note.read_text().startswith("off") and not (project / "results" / "mlflow").exists()


def test_requirements_are_those_of_predictors():
    names = {line.partition("==")[0] for line in requirements()}
    assert {"mlflow", "numpy", "pandas", "torch"} <= names
    assert not {"perfcast", "snakemake", "dvc"} & names
