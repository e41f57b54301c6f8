"""Life of runs: opened, grouped by invocation, and closed, abandoned ones included."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from perfcast.tracking.processes import is_gone, process_name
from perfcast.tracking.run import Run
from perfcast.tracking.store import Store, locked, open_client

if TYPE_CHECKING:
    from mlflow import MlflowClient

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
