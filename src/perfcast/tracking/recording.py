"""Records of finished results, each of them once: trainings, champions, the report, and models of MLflow."""

from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Dataset
from mlflow.entities import Run as StoredRun
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature, infer_signature
from mlflow.models.model import ModelInfo
from mlflow.types import ColSpec, Schema

import perfcast
from perfcast.evaluation import AVERAGE
from perfcast.inference import Suites, load_champion, predict_machines, read_machines
from perfcast.inference.champion import build_features
from perfcast.inference.options import make_options
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.metric_names import POINTS
from perfcast.schema.table_files import read_table
from perfcast.tracking.run import KIND_TAG, LIVE_TAG, RECORD_TAG, Run, open_experiment, start_run
from perfcast.tracking.store import RECORD, Store, describe_experiment, locked, open_client
from perfcast.utils.io import file_digests, read_json, sha256

_FOLDER = Path(__file__).parent
_PACKAGE = Path(perfcast.__file__).parent


def log_predictor(run: Run, name: str, folder: Path, table: pd.DataFrame, tags: Mapping[str, str]) -> ModelInfo:
    """Log a saved predictor with an example of three rows. It is loaded where perfcast is installed.

    `table` has the columns of the training table.
    """
    predictor = load_predictor(folder)
    example = table[predictor.input_names()].head(3)
    options = {"name": name, "input_example": example, "artifacts": {"predictor": str(folder)}}
    return _log(run, "train", tags, signature=_signature(example, predictor.predict(example)), **options)


def log_champion(run: Run, name: str, folder: Path, tags: Mapping[str, str]) -> ModelInfo:
    """Log a champion's folder as a model of described machines, with the code of perfcast that reads it.

    One that reads the last seconds of a running machine is logged as its predictor alone.
    """
    champion = load_champion(folder)
    if not champion.describes_machines:
        measured = champion.reference_data.measured
        rows = build_features(champion.dataset, measured.frame.tail(3), measured.columns, champion.features)
        return log_predictor(run, name, folder / "model", rows.frame, tags)
    example = champion.example_machine()
    options = make_options(neighbors=0, explain=False)
    predictions = predict_machines(read_machines(example), Suites(champion), options).to_frame()
    inputs = [ColSpec(type=kind, name=field, required=False) for field, kind in champion.field_types().items()]
    signature = ModelSignature(inputs=Schema(inputs), outputs=_signature(predictions).inputs)
    logged = {"name": name, "input_example": example, "artifacts": {"champion": str(folder)}}
    return _log(run, "champion", tags, signature=signature, code_paths=[str(_PACKAGE)], **logged)


def _signature(*tables: pd.DataFrame) -> Any:
    """Infer MLflow's signature of inputs, and of outputs if given."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Hint: Inferred schema contains integer")
        return infer_signature(*tables)


def _log(run: Run, stage: str, tags: Mapping[str, str], **options: Any) -> ModelInfo:
    """Log what a stage of the pipeline saved."""
    mlflow.set_tracking_uri(run.client.tracking_uri)
    options |= {
        "tags": {**tags, "mlflow.source.name": f"perfcast pipeline {stage}"},
        "model_type": tags.get("predictor"),
    }
    model = str(_FOLDER / "pyfunc_model.py")
    with mlflow.start_run(run_id=run.run_id):
        return mlflow.pyfunc.log_model(python_model=model, pip_requirements=requirements(), **options)


def requirements() -> list[str]:
    """Return MLflow and the distributions that predictors of perfcast need, pinned to what is installed."""
    lines = [line for line in metadata.requires("perfcast") or () if "extra ==" not in line or '"train"' in line]
    names = {"mlflow", *(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines)}
    return [f"{name}=={metadata.version(name)}" for name in sorted(names)]


def register_champion(run: Run, dataset: str, model: ModelInfo, tags: Mapping[str, str], description: str) -> str:
    """Register a logged model as the newest version of perfcast-<dataset>, alias `champion`; return the version."""
    client = run.client
    name = f"perfcast-{dataset}"
    with locked(run.store):
        try:
            client.get_registered_model(name)
        except MlflowException:
            client.create_registered_model(name, description=f"Best predictor of {dataset} by inner validation")
        version = client.create_model_version(
            name, model.model_uri, run_id=run.run_id, tags=dict(tags), description=description, model_id=model.model_id
        )
        client.set_registered_model_alias(name, "champion", version.version)
        # by which the page of the model names its version
        mark = json.dumps([{"name": name, "version": version.version}])
        client.set_logged_model_tags(model.model_id, {"mlflow.modelVersions": mark})
    return str(version.version)


_ERRORS = (*POINTS, "mape", "medape", "p90")
_METRICS = (*_ERRORS, "coverage", "width", "interval_score")
_DIGEST = 36  # characters that MLflow keeps of a dataset's digest
_ROUNDED = 1e-5  # an evaluation has six digits of an error

Scores = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
"""Metrics of a dataset by split, predictor, task and metric."""


@dataclass
class _Recorder:
    """A pass over one dataset of a folder of results: the experiment of MLflow, and its runs by their digest.

    `scores` are the metrics by dataset.
    """

    client: MlflowClient
    store: Store
    folder: Path
    scores: Mapping[str, Scores]
    dataset: str

    def __post_init__(self) -> None:
        self.experiment = f"perfcast/{self.dataset}"
        self.experiment_id = open_experiment(self.client, self.store, self.experiment)
        describe_experiment(self.client, self.experiment_id, self.folder / "runs" / self.dataset)
        self.known, self.live = self._tagged(RECORD_TAG), self._tagged(LIVE_TAG)

    def _tagged(self, tag: str) -> dict[str, StoredRun]:
        """Return the runs with a tag by its value."""
        runs = self.client.search_runs([self.experiment_id], f"tags.`{tag}` LIKE '%'", max_results=50_000)
        return {run.data.tags[tag]: run for run in runs}

    @cached_property
    def table(self) -> pd.DataFrame:
        """The table with features that the dataset's predictors were trained on."""
        return read_table(self.folder / "features" / f"{self.dataset}.parquet").frame

    def is_recorded(self, digest: str) -> bool:
        """Return whether a run records this digest from beginning to end."""
        return digest in self.known and self.known[digest].info.status == "FINISHED"

    @contextmanager
    def run(self, digest: str, name: str, tags: Mapping[str, str], *, file: Path, seconds: float) -> Iterator[Run]:
        """Open the run of a digest, a new one or that of a live training, in place of one that was cut off.

        It ends at the time of the file that it records, and lasted so many seconds.
        """
        end = int(file.stat().st_mtime * 1000)
        tags = {**tags, "mlflow.source.type": "LOCAL", RECORD_TAG: digest}
        if digest in self.known:
            cut_off = self.known[digest].info.run_id
            self.client.delete_run(cut_off)
            for model in self.client.search_logged_models([self.experiment_id], f"source_run_id = '{cut_off}'"):
                self.client.delete_logged_model(model.model_id)
        if digest in self.live and digest not in self.known:
            run = Run(self.client, self.live[digest].info.run_id, self.store, end)
            self.client.update_run(run.run_id, status="RUNNING")
            run.set_tags(tags)
        else:
            start = end - int(seconds * 1000)
            run = start_run(self.client, self.store, self.experiment, name, tags, start=start, time=end)
        yield run
        self.client.set_terminated(run.run_id, end_time=end)

    def data(self, name: str, digest: str, profile: Mapping[str, int]) -> Dataset:
        """Return rows of the dataset's table as an entry of MLflow."""
        kinds = [
            {"name": str(column), "type": "double" if pd.api.types.is_numeric_dtype(kind) else "string"}
            for column, kind in self.table.dtypes.items()
        ]
        source = {"uri": f"{self.folder.name}/features/{self.dataset}.parquet"}
        return Dataset(name, digest[:_DIGEST], "local", *map(json.dumps, (source, {"mlflow_colspec": kinds}, profile)))


def record_results(store: Store, folder: Path, scores: Mapping[str, Scores], *, trainings_only: bool = False) -> int:
    """Record every training, champion and report of a folder of results that the store does not have; count them.

    Metrics of recorded trainings are brought up to date. One process records at a time.
    """
    client = open_client(store)
    count = 0
    with locked(store, "record"):
        for runs in sorted({path.parents[2] for path in (folder / "runs").glob(f"*/*/*/{RECORD}")}):
            recorder = _Recorder(client, store, folder, scores, runs.name)
            count += sum(_record_training(recorder, path) for path in sorted(runs.glob(f"*/*/{RECORD}")))
            if not trainings_only:
                count += _record_champion(recorder)
    return count


def _scores(recorder: _Recorder, content: Mapping[str, Any]) -> dict[str, float]:
    """Return the evaluated metrics of a training; none where the evaluation is of another training.

    The error on the test rows tells, which both have: times of files would not, after a clock was set back.
    """
    scores = recorder.scores.get(recorder.dataset, {})
    tasks = scores.get(content["split"], {}).get(content["predictor"], {})
    evaluated = tasks.get(AVERAGE, {}).get("mape")
    trained = content["metrics"].get("mape")
    if evaluated is None or trained is None or not math.isclose(evaluated, trained, rel_tol=_ROUNDED):
        return {}
    return {
        metric if task == AVERAGE else f"{metric}/{task}": value
        for task, values in tasks.items()
        for metric, value in values.items()
        if metric in (_METRICS if task == AVERAGE else _ERRORS)
    }


def _update_metrics(stored: StoredRun, recorder: _Recorder, scores: Mapping[str, float]) -> None:
    """Record the metrics that another evaluation, such as one with another level, changed."""
    if changed := {name: value for name, value in scores.items() if stored.data.metrics.get(name) != value}:
        (model,), (data,) = stored.outputs.model_outputs, stored.inputs.dataset_inputs
        _log_scores(Run(recorder.client, stored.info.run_id, recorder.store), changed, model.model_id, data.dataset)


def _log_scores(run: Run, metrics: Mapping[str, float], model_id: str, data: Dataset) -> None:
    """Record metrics; those that the page Models has in columns are of the model and the split's dataset."""
    headline = {name: metrics[name] for name in _METRICS if name in metrics}
    run.log_metrics(headline, model_id=model_id, data=data)
    run.log_metrics({name: value for name, value in metrics.items() if name not in headline})


def _record_training(recorder: _Recorder, path: Path) -> int:
    """Record a training; 0 when the store has it."""
    digest = sha256(path)
    content = read_json(path)
    folder = path.parent
    scores = _scores(recorder, content)
    if recorder.is_recorded(digest):
        _update_metrics(recorder.known[digest], recorder, scores)
        return 0
    names = {name: content[name] for name in ("dataset", "split", "predictor")}
    usage = _read_usage(recorder.folder / "benchmarks" / "train" / Path(*names.values()).with_suffix(".tsv"))
    name = f"{content['predictor']}-{content['split']}"
    tags = {KIND_TAG: "training", **names, **content["tags"], "mlflow.source.name": "perfcast pipeline train"}
    with recorder.run(digest, name, tags, file=path, seconds=usage.get("seconds", 0.0)) as run:
        run.log_params({**names, **content["parameters"]})
        rows = {f"{subset}_rows": rows for subset, rows in content["rows"].items()}
        joint = hashlib.sha256("".join(content["sha256"][name] for name in ("table", "folds")).encode()).hexdigest()
        data = recorder.data(f"{recorder.dataset}-{content['split']}", joint, rows)
        run.log_dataset(data, "test")
        model = log_predictor(run, name, folder / content["model"], recorder.table, {**names, "preset": tags["preset"]})
        _log_scores(run, {**content["metrics"], **scores, **usage}, model.model_id, data)
        history = pd.read_csv(folder / content["curves"])
        if "epoch" in history:
            run.log_history(history)
        run.log_artifacts(path, folder / "config.yaml", folder / "predictions.parquet")
    return 1


def _read_usage(path: Path) -> dict[str, float]:
    """Return the seconds and the memory of a job that Snakemake measured; empty without its file."""
    if not path.exists():
        return {}
    row = pd.read_csv(path, sep="\t", na_values="-").iloc[0]
    system = {
        f"system/{name}": float(row[name]) for name in ("cpu_time", "mean_load", "io_in", "io_out") if name in row
    }
    return {"seconds": float(row["s"]), "memory_mib": float(row["max_rss"]), **system}


def _record_champion(recorder: _Recorder) -> int:
    """Log a champion's folder as a model with metrics, and register it; 0 when the store has it."""
    dataset = recorder.dataset
    results = recorder.folder
    folder = results / "champion" / dataset
    if not (folder / "about.json").exists():
        return 0
    digest = hashlib.sha256(json.dumps(file_digests(folder), sort_keys=True).encode()).hexdigest()
    if recorder.is_recorded(digest):
        return 0
    about = read_json(folder / "about.json")
    predictor = about["predictor"]
    usage = _read_usage(results / "benchmarks" / "champion" / f"{dataset}.tsv")
    metrics = _by_split(recorder.scores.get(dataset, {}), predictor)
    tags = {"dataset": dataset, "predictor": predictor, "preset": str(about["preset"])}
    marks = {KIND_TAG: "champion", "mlflow.source.name": "perfcast pipeline champion"}
    name = f"champion: {predictor}"
    seconds = usage.get("seconds", 0.0)
    with recorder.run(digest, name, {**tags, **marks}, file=folder / "about.json", seconds=seconds) as run:
        run.log_params({key: about[key] for key in ("predictor", "preset", "seed", "rows", "table_sha256")})
        run.log_dataset(recorder.data(dataset, about["table_sha256"], {"rows": about["rows"]}), "training")
        model = log_champion(run, f"champion-{dataset}", folder, tags)
        run.log_metrics(metrics, model_id=model.model_id)
        run.log_metrics(usage)
        card = results / "model_cards" / f"{dataset}.md"
        run.log_artifacts(folder / "about.json", card, results / "report.html", results / "report")
        page = f"#/experiments/{recorder.experiment_id}/runs/{run.run_id}/artifacts"
        description = (
            f"**{about['predictor']}**, preset {about['preset']}, fitted on {about['rows']} rows of {dataset}. "
            f"Chosen by: {about['chosen_by']}. [Model card]({page}/{card.name}), [report]({page}/report.html)"
        )
        register_champion(run, dataset, model, {**tags, RECORD_TAG: digest}, description)
        run.set_tags({"mlflow.note.content": description})
    return 1


def _by_split(scores: Scores, predictor: str) -> dict[str, float]:
    """Return the averages of a predictor over the tasks, under split/<split>/<metric>."""
    return {
        f"split/{split}/{metric}": value
        for split, predictors in scores.items()
        for metric, value in predictors.get(predictor, {}).get(AVERAGE, {}).items()
        if metric in _METRICS
    }
