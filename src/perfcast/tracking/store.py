"""The tracking store: its configuration, its client, its locks, pages of its experiments, lines about its faults."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.config.conf_files import StrictModel, validated
from perfcast.utils.errors import UserError, printable

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from mlflow import MlflowClient


LOCK_SECONDS = 300.0
"""Time that a lock is waited for. Units: seconds."""
_SQLITE = "sqlite:///"
_SETTINGS = {
    # a server that does not answer costs ten seconds; what it lacks is recorded later
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
_PLACES = {
    "experiments": "artifact_location",
    "runs": "artifact_uri",
    "logged_models": "artifact_location",
    "model_versions": "storage_location",
}
"""Columns of artifact addresses in MLflow's database, by table."""
Charts = Sequence[Mapping[str, Any]]
"""Charts of a section of MLflow's page."""
RECORD = "record.json"
"""File of a training's folder that is recorded: parameters, metrics, tags and digests, without times."""
_VIEW = "mlflow.sharedViewState.perfcast-"
"""Beginning of the tags of an experiment that MLflow's button Views lists: name, times and state of a page."""
_SECTIONS = {"Errors": "mape medape p90", "Training": "", "Effort": "coverage width seconds memory_mib"}
_CURVES = [{"type": "LINE", "metricKey": f"training/{name}"} for name in ("train_loss", "validation_error")]


@dataclass(frozen=True)
class Store:
    """Place of the records."""

    uri: str
    """Tracking URI of MLflow."""
    artifacts: Path
    """Folder of the files of a database; that of this project's lock in any case."""
    invocation: str
    """Name of the command that makes the runs."""
    bucket: str = ""
    """URI where the files go instead, such as s3://...; a server keeps its own."""
    live: bool = False
    """Whether learning curves of running trainings are streamed."""

    def place(self, experiment: str) -> str | None:
        """Return the place of an experiment's files; None where the server decides."""
        if self.uri.startswith(("http://", "https://", "databricks")):
            return None
        return f"{self.bucket or self.artifacts.as_uri()}/{experiment}"


class TrackingConf(StrictModel):
    """conf/tracking/default.yaml."""

    uri: str
    """Tracking URI of MLflow; MLFLOW_TRACKING_URI comes before it."""
    artifacts: str
    """Folder or URI of the files; PERFCAST_ARTIFACTS comes before it."""
    enabled: bool = True
    """Whether anything is recorded."""
    live: bool = False
    """Whether learning curves of running trainings are streamed."""


def store_from(conf: Mapping[str, Any], root: Path, environment: Mapping[str, str]) -> Store | None:
    """Return the configured store, or None when tracking is off.

    MLFLOW_TRACKING_URI comes before the conf's uri, and PERFCAST_ARTIFACTS, a folder or a URI, before its artifacts.
    """
    declared = validated(TrackingConf, "conf/tracking/default.yaml", conf)
    if not declared.enabled:
        return None
    uri = environment.get("MLFLOW_TRACKING_URI") or declared.uri
    if uri.startswith(_SQLITE):
        uri = f"{_SQLITE}{(root / uri.removeprefix(_SQLITE)).resolve()}"
    stamp = environment.get("PERFCAST_INVOCATION") or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}-{os.getpid()}"
    artifacts = environment.get("PERFCAST_ARTIFACTS") or declared.artifacts
    bucket = artifacts.rstrip("/") if "://" in artifacts else ""
    folder = (root / (declared.artifacts if bucket else artifacts)).resolve()
    return Store(uri, folder, stamp, bucket, declared.live)


def locked(store: Store, name: str = "store") -> BaseFileLock:
    """Return one of the store's locks, a context manager: `store` for a write, `record` for a pass over results.

    Raises: filelock.Timeout, on entering, when another process holds it for too long.
    """
    from filelock import FileLock

    store.artifacts.mkdir(parents=True, exist_ok=True)
    return FileLock(store.artifacts.parent / f"{name}.lock", timeout=LOCK_SECONDS)


def open_client(store: Store) -> MlflowClient:
    """Return a client of the store.

    Processes race in the migrations of a fresh sqlite file, so the first access is under the lock. A kill during
    migrations leaves tables that no later process can use, so a new file gets its name when it is whole.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient
    from mlflow.store.db import utils

    utils.MAX_RETRY_COUNT = 1  # ten attempts at a store that fails take minutes
    logging.getLogger(utils.__name__).setLevel(logging.CRITICAL)  # it logs what it raises as well
    logging.getLogger("mlflow.system_metrics").setLevel(logging.CRITICAL)
    with locked(store):
        if store.uri.startswith(_SQLITE):
            database = Path(store.uri.removeprefix(_SQLITE))
            if database.is_file():
                follow_move(database, store.artifacts)
            else:
                _make_database(database)
        client = MlflowClient(tracking_uri=store.uri, registry_uri=store.uri)
        client.search_experiments(max_results=1)
    return client


def _make_database(path: Path) -> None:
    """Make MLflow's tables in a new sqlite file."""
    from mlflow import MlflowClient

    folder = path.with_name("new")
    shutil.rmtree(folder, ignore_errors=True)  # what a kill left
    folder.mkdir(parents=True)
    new = Path(tempfile.mkdtemp(dir=folder)) / path.name  # a client remembers that it made the tables of an address
    MlflowClient(f"{_SQLITE}{new}", f"{_SQLITE}{new}").search_experiments(max_results=1)
    new.replace(path)
    shutil.rmtree(folder)


def follow_move(database: Path, artifacts: Path) -> None:
    """Let the addresses in a database name the folder of artifacts beside it, after both were moved or copied."""
    if database.parent.resolve() != artifacts.parent.resolve():
        return
    new = artifacts.as_uri()
    with closing(sqlite3.connect(database)) as base, base:
        if not base.execute("select 1 from sqlite_master where name = 'experiments'").fetchone():
            return
        located = base.execute("select name, artifact_location from experiments").fetchall()
        roots = {where.removesuffix(f"/{name}") for name, where in located if where.endswith(f"/{name}")}
        for old in {root for root in roots if root.startswith("file:")} - {new}:
            for table, column in _PLACES.items():  # the names of tables and columns are those above
                begins = f"substr({column}, 1, ?) = ?"
                change = f"update {table} set {column} = ? || substr({column}, ?) where {begins}"
                base.execute(change, (new, len(old) + 1, len(old) + 1, f"{old}/"))


def save_view(
    client: MlflowClient, experiment_id: str, name: str, condition: str, columns: Sequence[str], **charts: Charts
) -> None:
    """Save a view of the runs under a condition, by the error in the first column, with sections of charts."""
    state = {
        "searchFilter": condition,
        "orderByKey": columns[0],
        "orderByAsc": True,
        "runsHiddenMode": "FIRST_20_RUNS",
        "selectedColumns": columns,
        "columnOrder": columns,
        "isAccordionReordered": True,  # otherwise sections are in the order of their names
        "compareRunSections": [
            {"uuid": title, "name": title, "display": True, "columns": min(3, len(charts[title]))} for title in charts
        ],
        "compareRunCharts": [
            {"uuid": f"{title} {number}", "metricSectionId": title, "runsCountToCompare": 20, **chart}
            for title, entries in charts.items()
            for number, chart in enumerate(entries)
        ],
    }
    view = {"name": name, "createdAt": 0, "updatedAt": 0, "state": json.dumps(state)}
    client.set_experiment_tag(experiment_id, f"{_VIEW}{name.replace(' ', '-')}", json.dumps(view))


def describe_experiment(client: MlflowClient, experiment_id: str, runs: Path) -> None:
    """Set the description and the saved views, of all trainings and of those of each split, by folder of runs."""
    charts = {title: [{"type": "BAR", "metricKey": name} for name in text.split()] for title, text in _SECTIONS.items()}
    columns = [f"metrics.`{name}`" for text in _SECTIONS.values() for name in text.split()]
    columns[3:3] = ["tags.`split`", "tags.`predictor`"]
    condition = "tags.`perfcast.kind` = 'training'"
    splits = (path.name for path in sorted(runs.iterdir()))
    conditions = {"all trainings": ""} | {f"split {split}": f" and tags.`split` = '{split}'" for split in splits}
    for name, more in conditions.items():
        save_view(client, experiment_id, name, condition + more, columns, **{**charts, "Training": _CURVES})
    note = (
        "One run per training; **Views** lists those of each split by error. Metrics are those of the test rows in %, "
        "averaged over the suites: `mape`, `medape`, `p90` (90 % of the errors are smaller), `coverage` and `width` of "
        "prediction intervals. Runs of kind `champion` hold the model of `perfcast predict`."
    )
    client.set_experiment_tag(experiment_id, "mlflow.note.content", note)


def explain_failure(error: BaseException) -> str:
    """Return what a store, a driver or a server raised as one short line."""
    if isinstance(error, UserError):
        return printable(f"{error.fact}; {error.remedy}" if error.remedy else error.fact)
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


def warn_unrecorded(error: BaseException) -> None:
    """Print one line about a record that was not written."""
    print(f"perfcast: tracking: {explain_failure(error)}; the results are kept", file=sys.stderr, flush=True)
