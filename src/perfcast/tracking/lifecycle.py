"""States of runs over their life: abandoned ones end, and reports and champions are recorded."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from perfcast.tracking.run import Run
from perfcast.tracking.store import Store, locked, open_client

if TYPE_CHECKING:
    import pandas as pd
    from mlflow import MlflowClient


def process_name(pid: int) -> str:
    """Name a process of this boot of this machine, without naming the machine: boot, process, its start, machine."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    start = Path(f"/proc/{pid}/stat")
    started = start.read_text().rpartition(")")[2].split()[19] if start.exists() else "?"
    return f"{boot.read_text().strip()[:8] if boot.exists() else '?'}:{pid}:{started}:{_machine_digest()}"


def _machine_digest() -> str:
    """Return a digest of this machine or container, which has its own process numbers; empty where there is no id."""
    path = Path("/etc/machine-id")
    known = path.read_text().strip() if path.exists() else ""
    return hashlib.sha256(f"perfcast {known} {platform.node()}".encode()).hexdigest()[:8] if known else ""


def is_gone(process: str) -> bool:
    """Return whether a process, by its name, ran on this machine and has ended; False where that is unknown."""
    if process.count(":") < 2:
        return False
    boot, pid, started, *machine = process.split(":")
    own_boot, _, _, own_machine = process_name(os.getpid()).split(":")
    if machine and machine[0] != own_machine:
        return False
    if boot != own_boot:
        return bool(machine and own_machine)  # before this machine was started again
    return process_name(int(pid)).split(":")[2] != started


_PARENT_TAG = "mlflow.parentRunId"
_INVOCATION_TAG = "perfcast.invocation"
_PROCESS_TAG = "perfcast.process"
# the UI then opens the experiment as trainings, not as traces of a language model
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}


def _experiment(client: MlflowClient, store: Store, name: str) -> str:
    """Return the id of the experiment, made under the lock when there is none."""
    with locked(store):
        experiment = client.get_experiment_by_name(name)
        if experiment is not None:
            return str(experiment.experiment_id)
        return str(client.create_experiment(name, artifact_location=store.place(name), tags=_EXPERIMENT_TAGS))


def _parent(client: MlflowClient, store: Store, experiment: str) -> str:
    """Return the parent of this invocation's runs of one experiment.

    It is closed as soon as it exists: children attach to a closed run as well, and a kill cannot leave it open.
    """
    with locked(store):
        runs = client.search_runs([experiment], f"tags.`{_INVOCATION_TAG}` = '{store.invocation}'", max_results=1)
        if runs:
            return str(runs[0].info.run_id)
        tags = {_INVOCATION_TAG: store.invocation, "perfcast.kind": "invocation", **git_tags()}
        run = client.create_run(experiment, tags=tags, run_name=f"run {store.invocation}")
        client.set_terminated(run.info.run_id)
        return str(run.info.run_id)


@contextmanager
def parent_run(store: Store, experiment: str) -> Iterator[Run]:
    """Yield the parent run of this invocation, for plots and report."""
    client = open_client(store)
    _close_abandoned(client)
    yield Run(client, _parent(client, store, _experiment(client, store, experiment)), store)


@contextmanager
def start_run(store: Store, experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[Run]:
    """Open a child run of this invocation; it ends FINISHED, or FAILED or KILLED when the block does not end well."""
    client = open_client(store)
    experiment_id = _experiment(client, store, experiment)
    _close_abandoned(client)
    all_tags = {
        **tags,
        **git_tags(),
        _PARENT_TAG: _parent(client, store, experiment_id),
        _PROCESS_TAG: process_name(os.getpid()),
    }
    run = client.create_run(experiment_id, tags=all_tags, run_name=name)
    before = signal.signal(signal.SIGTERM, _raise_exit)
    status = "FAILED"
    try:
        yield Run(client, run.info.run_id, store)
        status = "FINISHED"
    except (KeyboardInterrupt, SystemExit):
        status = "KILLED"
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        client.set_terminated(run.info.run_id, status=status)


def _raise_exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _close_abandoned(client: MlflowClient) -> None:
    """End runs of any experiment left RUNNING by processes of this machine that are gone: a kill gives them no time."""
    for run_id in _abandoned(client):
        client.set_terminated(run_id, status="KILLED")


def abandoned_runs(store: Store) -> int:
    """Count the runs of a store that are RUNNING by its record and by processes of this machine that are gone."""
    return len(_abandoned(open_client(store)))


def _abandoned(client: MlflowClient) -> list[str]:
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    running = client.search_runs(experiments, "attributes.status = 'RUNNING'") if experiments else []
    return [run.info.run_id for run in running if is_gone(run.data.tags.get(_PROCESS_TAG, ""))]


def register_champion(store: Store, dataset: str, run_id: str, model_uri: str, tags: Mapping[str, str]) -> str:
    """Register a logged model as the newest version of perfcast-<dataset>, alias `champion`; return the version."""
    client = open_client(store)
    name = f"perfcast-{dataset}"
    with locked(store):
        return _register(client, name, run_id, model_uri, tags)


def _register(client: MlflowClient, name: str, run_id: str, model_uri: str, tags: Mapping[str, str]) -> str:
    from mlflow.exceptions import MlflowException

    try:
        client.get_registered_model(name)
    except MlflowException:
        client.create_registered_model(name, description="Best predictor by inner validation")
    version = client.create_model_version(name, model_uri, run_id=run_id, tags=dict(tags))
    client.set_registered_model_alias(name, "champion", version.version)
    return str(version.version)


def git_tags() -> dict[str, str]:
    """Return the commit of the working folder and whether it has changes, empty outside a repository."""
    try:
        commit = _git("rev-parse", "HEAD")
        changed = bool(_git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"mlflow.source.git.commit": commit, "perfcast.uncommitted_changes": str(changed).lower()}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, timeout=20).stdout.strip()


_LEADING = ("mape", "medape")
_PARAMETERS = ("predictor", "preset", "seed", "rows", "table_sha256")


def record_champion(
    store: Store, folder: Path, about: Mapping[str, Any], fields: Mapping[str, str], example: pd.DataFrame
) -> None:
    """Log a champion's folder as a model, and give it the alias `champion` in the registry.

    `fields` maps the fields that describe a machine to MLflow's type of their values; `example` is such a machine.
    """
    dataset, predictor = about["dataset"], about["predictor"]
    tags = {"perfcast.kind": "champion", "dataset": dataset, "predictor": predictor}
    with start_run(store, f"perfcast/{dataset}", f"champion: {predictor}", tags) as record:
        record.log_params({key: about[key] for key in _PARAMETERS})
        record.log_artifacts(folder / "about.json")
        uri = record.log_champion(folder, fields, example)
        register_champion(store, dataset, record.run_id, uri, tags)


def record_report(
    store: Store, report: Path, results: Path, metrics: Mapping[str, Mapping[str, Any]], preset: str
) -> None:
    """Log report and plots to the invocation's run, and one run per predictor with its metrics on every split.

    The UI compares the latter side by side: a training has the metrics of one split only.
    `metrics` is {dataset: {split: {predictor: {task: {metric: value}}}}}.
    """
    for dataset, splits in metrics.items():
        experiment = f"perfcast/{dataset}"
        with parent_run(store, experiment) as record, tempfile.TemporaryDirectory() as temporary:
            # both folders have the dataset's name, and would be one folder among the artifacts
            for kind in ("plots", "evaluation"):
                if (results / kind / dataset).is_dir():
                    hidden = shutil.ignore_patterns(".*")
                    shutil.copytree(results / kind / dataset, Path(temporary) / kind, ignore=hidden)
            record.log_artifacts(report, Path(temporary) / "plots", Path(temporary) / "evaluation")
        by_predictor: dict[str, dict[str, float]] = {}
        for split, predictors in splits.items():
            for predictor, tasks in predictors.items():
                by_predictor.setdefault(predictor, {}).update(_flatten_metrics(split, tasks))
        for predictor, values in sorted(by_predictor.items()):
            tags = {"perfcast.kind": "comparison", "dataset": dataset, "predictor": predictor}
            with start_run(store, experiment, f"{predictor}: all splits", tags) as record:
                record.log_params({"predictor": predictor, "preset": preset})
                record.log_metrics(values)


def _flatten_metrics(split: str, tasks: Mapping[str, Any]) -> dict[str, float]:
    """Return {split/task/metric: value} of the protocol's two leading metrics."""
    return {
        f"{split}/{task}/{metric}": value
        for task, metrics in tasks.items()
        for metric, value in metrics.items()
        if metric in _LEADING
    }
