"""States of runs over their life: they open, end, and end when their process is gone."""

from __future__ import annotations

import getpass
import hashlib
import os
import platform
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from perfcast.tracking.client import open_client
from perfcast.tracking.run import Run
from perfcast.tracking.store import Store, locked, warn_unrecorded
from perfcast.tracking.store_check import check_store

if TYPE_CHECKING:
    from mlflow import MlflowClient

RECORD_TAG = "perfcast.record"
"""Tag of a run: the SHA-256 of the file that it records."""


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


INVOCATION_TAG = "perfcast.invocation"
KIND_TAG = "perfcast.kind"
_PROCESS_TAG = "perfcast.process"
# the UI then opens the experiment as trainings, not as traces of a language model
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}


def open_experiment(client: MlflowClient, store: Store, name: str) -> str:
    """Return the id of the experiment, made under the lock when there is none."""
    with locked(store):
        experiment = client.get_experiment_by_name(name)
        if experiment is not None:
            return str(experiment.experiment_id)
        return str(client.create_experiment(name, artifact_location=store.place(name), tags=_EXPERIMENT_TAGS))


@contextmanager
def start_run(store: Store, experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[Run]:
    """Open a run of this process; it ends FINISHED, or FAILED or KILLED when the block does not end well.

    A store that cannot end it costs a line: the next command marks the run as killed.
    """
    client = open_client(store)
    experiment_id = open_experiment(client, store, experiment)
    close_abandoned(client)
    all_tags = {**tags, **common_tags(store), _PROCESS_TAG: process_name(os.getpid())}
    run = client.create_run(experiment_id, tags=all_tags, run_name=name)
    before = {number: signal.signal(number, _raise_exit) for number in (signal.SIGTERM, signal.SIGHUP)}
    status = "FAILED"
    try:
        yield Run(client, run.info.run_id, store)
        status = "FINISHED"
    except (KeyboardInterrupt, SystemExit):
        status = "KILLED"
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        try:
            check_store(store)
            client.set_terminated(run.info.run_id, status=status)
        except Exception as error:  # whatever a store, a driver or a server raises
            warn_unrecorded(error)


@dataclass
class LiveRecord:
    """The open record of a running training; after the first failure of the store it records no more."""

    run: Run | None
    epochs: int = 0
    process: int = field(default_factory=os.getpid)

    def log_epoch(self, entry: Mapping[str, float]) -> None:
        """Record the learning curve's entry of an epoch. Steps count on over folds, seeds and refits."""
        if os.getpid() != self.process:  # a worker of several devices, forked with the store's connection
            return
        curves = {f"live/{name}": value for name, value in entry.items() if name != "epoch"}
        self.epochs += 1
        self._try(lambda run: run.log_metrics(curves, self.epochs))

    def name_record(self, digest: str) -> None:
        """Name the file that the training wrote, which completes this run later."""
        self._try(lambda run: run.set_tags({RECORD_TAG: digest}))

    def _try(self, write: Callable[[Run], None]) -> None:
        if self.run is not None:
            try:
                check_store(self.run.store)
                write(self.run)
            except Exception as error:  # whatever a store, a driver or a server raises
                warn_unrecorded(error)
                self.run = None


@contextmanager
def live_record(store: Store, experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[LiveRecord]:
    """Record a training while it runs. A store that fails costs a line and the live curves, never the training."""
    with ExitStack() as stack:
        run = None
        try:
            run = stack.enter_context(start_run(store, experiment, name, {KIND_TAG: "training", **tags}))
            if store.system_metrics:
                stack.enter_context(_system_metrics(run))
        except Exception as error:  # whatever a store, a driver or a server raises
            warn_unrecorded(error)
        yield LiveRecord(run)


@contextmanager
def _system_metrics(run: Run) -> Iterator[None]:
    """Record the load of this machine as metrics system/..., every ten seconds."""
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    monitor = SystemMetricsMonitor(run.run_id, tracking_uri=run.client.tracking_uri)
    monitor.start()
    try:
        yield
    finally:
        monitor.finish()


def _raise_exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def close_abandoned(client: MlflowClient) -> None:
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


def common_tags(store: Store) -> dict[str, str]:
    """Return the tags of every run: invocation, user, commit."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        user = ""
    return {INVOCATION_TAG: store.invocation, **({"mlflow.user": user} if user else {}), **git_tags()}


@cache
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
