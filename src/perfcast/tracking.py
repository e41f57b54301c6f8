"""The record of every training. The only module that knows MLflow; nothing here is ever read back by a stage."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pandas as pd

from perfcast import __version__
from perfcast.errors import UserError, unknown_name
from perfcast.relocating import follow

if TYPE_CHECKING:
    from mlflow import MlflowClient

_PARENT_TAG = "mlflow.parentRunId"
_INVOCATION_TAG = "perfcast.invocation"
_PROCESS_TAG = "perfcast.process"
_BATCH = 900  # MLflow accepts at most 1,000 metrics in one call
_PARAM_LENGTH = 500
# the UI then opens the experiment as trainings, not as traces of a language model
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}


@dataclass(frozen=True)
class Store:
    """Where to record.

    `uri` is an MLflow tracking URI; `artifacts` a folder for a database's files, of this project's lock in any case;
    `bucket` a URI where they go instead, such as s3://...; a server keeps its own. `invocation` names the command under
    which runs are gathered in one parent run.
    """

    uri: str
    artifacts: Path
    invocation: str
    bucket: str = ""

    def place(self, experiment: str) -> str | None:
        """Return where the files of an experiment go; None where the server decides."""
        if self.uri.startswith(("http://", "https://", "databricks")):
            return None
        return f"{self.bucket or self.artifacts.as_uri()}/{experiment}"


def store_from(conf: Mapping[str, Any], root: Path, environment: Mapping[str, str]) -> Store | None:
    """Return the configured store, or None when tracking is off.

    MLFLOW_TRACKING_URI comes before the conf's uri, and PERFCAST_ARTIFACTS, a folder or a URI, before its artifacts.
    """
    _check(conf)
    if not conf.get("enabled", True):
        return None
    uri = environment.get("MLFLOW_TRACKING_URI") or str(conf["uri"])
    prefix = "sqlite:///"
    if uri.startswith(prefix) and not uri.startswith(prefix + "/"):
        uri = f"{prefix}{(root / uri.removeprefix(prefix)).resolve()}"
    stamp = environment.get("PERFCAST_INVOCATION") or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}-{os.getpid()}"
    given = environment.get("PERFCAST_ARTIFACTS") or str(conf["artifacts"])
    bucket = given.rstrip("/") if "://" in given else ""
    return Store(uri, (root / (str(conf["artifacts"]) if bucket else given)).resolve(), stamp, bucket)


def _check(conf: Mapping[str, Any]) -> None:
    where = "conf/tracking/default.yaml"
    kinds = {"uri": (str, "text"), "artifacts": (str, "text"), "enabled": (bool, "true or false")}
    if not isinstance(conf, Mapping):
        raise UserError(f"{where} must be a mapping of keys to values", f"found {type(conf).__name__}")
    for key, value in conf.items():
        if key not in kinds:
            raise unknown_name(f"a key of {where}", str(key), kinds)
        kind, words = kinds[key]
        if not isinstance(value, kind):
            raise UserError(f"{key!r} in {where} must be {words}", f"found {value!r:.80}", f"edit {where}")
    if missing := [key for key in ("uri", "artifacts") if key not in conf]:
        raise UserError(f"{where} must have the key {missing[0]!r}", "it is missing", f"edit {where}")


@dataclass
class Run:
    """An open run: log to it until its `with` block ends."""

    client: MlflowClient
    run_id: str
    store: Store

    def _record(self, **batch: Any) -> None:
        """Write a batch; one process at a time, because sqlite lets those that wait starve when many write at once."""
        with _locked(self.store):
            self.client.log_batch(self.run_id, **batch)

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Record parameters, nested ones under dotted names."""
        from mlflow.entities import Param

        flat = dict(_flatten(params))
        self._record(params=[Param(k, str(v)[:_PARAM_LENGTH]) for k, v in sorted(flat.items())])

    def log_metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        """Record numbers under stable names; those that are not finite are left out."""
        from mlflow.entities import Metric

        now = int(datetime.now(UTC).timestamp() * 1000)
        entries = [Metric(name, float(value), now, step) for name, value in metrics.items() if math.isfinite(value)]
        for start in range(0, len(entries), _BATCH):
            self._record(metrics=entries[start : start + _BATCH])

    def log_history(self, history: pd.DataFrame) -> None:
        """Record per-epoch curves.

        Shapes: `history` has the columns seed, fold, epoch and one column per curve. The first seed and fold go under
        the plain name of the curve, so that runs compare; the others carry their seed and fold.
        """
        from mlflow.entities import Metric

        now = int(datetime.now(UTC).timestamp() * 1000)
        curves = [name for name in history.columns if name not in {"seed", "fold", "epoch"}]
        first = (history["seed"].iloc[0], history["fold"].iloc[0]) if len(history) else None
        entries = []
        for (seed, fold), part in history.groupby(["seed", "fold"], sort=False):
            where = "curve" if (seed, fold) == first else f"curve_seed{seed}_fold{fold}"
            for name in curves:
                entries += [
                    Metric(f"{where}/{name}", float(value), now, int(epoch))
                    for epoch, value in zip(part["epoch"], part[name], strict=True)
                    if math.isfinite(value)
                ]
        for start in range(0, len(entries), _BATCH):
            self._record(metrics=entries[start : start + _BATCH])

    def log_artifacts(self, *paths: Path) -> None:
        """Copy files and folders to the run."""
        for path in paths:
            if path.is_dir():
                self.client.log_artifacts(self.run_id, str(path), path.name)
            elif path.is_file():
                self.client.log_artifact(self.run_id, str(path))

    def log_dataset(self, name: str, digest: str, context: str) -> None:
        """Record which data the run used, by digest."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        entry = Dataset(name=name, digest=digest[:36], source_type="local", source=name, schema=None, profile=None)
        with _locked(self.store):  # two runs that meet a new data set would both insert it
            self.client.log_inputs(self.run_id, [DatasetInput(entry, [InputTag("mlflow.data.context", context)])])

    def log_model(self, folder: Path, example: pd.DataFrame, forecast: pd.DataFrame) -> str:
        """Log a saved predictor as a pyfunc model with signature and input example; return its URI."""
        import mlflow
        from mlflow.models import infer_signature

        mlflow.set_tracking_uri(self.client.tracking_uri)
        with mlflow.start_run(run_id=self.run_id):
            logged = mlflow.pyfunc.log_model(
                name="model",
                python_model=str(Path(__file__).with_name("pyfunc_model.py")),
                artifacts={"predictor": str(folder)},
                signature=infer_signature(example, forecast),
                input_example=example,
                pip_requirements=[f"perfcast=={__version__}"],
            )
        return str(logged.model_uri)

    def log_champion(self, folder: Path, words: Mapping[str, str], example: pd.DataFrame) -> str:
        """Log a champion's folder as a pyfunc model that is told machines in words; return its URI.

        `words` maps what a machine may be described by, all of it optional, to MLflow's type of its values; `example`
        is such a machine.
        """
        import mlflow
        from mlflow.models import ModelSignature
        from mlflow.types import ColSpec, Schema

        inputs = [ColSpec(type=kind, name=word, required=False) for word, kind in words.items()]
        mlflow.set_tracking_uri(self.client.tracking_uri)
        with mlflow.start_run(run_id=self.run_id):
            logged = mlflow.pyfunc.log_model(
                name="model",
                python_model=str(Path(__file__).with_name("pyfunc_champion.py")),
                artifacts={"champion": str(folder)},
                signature=ModelSignature(inputs=Schema(inputs)),
                input_example=example,
                pip_requirements=[f"perfcast=={__version__}"],
            )
        return str(logged.model_uri)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Record tags."""
        for name, value in tags.items():
            self.client.set_tag(self.run_id, name, value)


def _locked(store: Store) -> AbstractContextManager[Any]:
    """Hold the store's lock: what must not happen twice happens inside."""
    from filelock import FileLock

    store.artifacts.mkdir(parents=True, exist_ok=True)
    return FileLock(store.artifacts.parent / "store.lock")


def open_client(store: Store) -> MlflowClient:
    """Return a client of the store, made and migrated first when it is new.

    Eight processes that meet a fresh sqlite file race in its migrations, so the first contact is under a file lock. A
    kill in the middle of them leaves tables that no later process can go on from, so a new file gets its name when it
    is whole.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    # it shows pages of traceback for what it raises as well
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)

    database = Path(store.uri.removeprefix("sqlite:///")) if store.uri.startswith("sqlite:///") else None
    if database:
        database.parent.mkdir(parents=True, exist_ok=True)
    with _locked(store):
        if database and database.is_file():
            follow(database, store.artifacts)
        elif database:
            _make_database(database)
        client = MlflowClient(tracking_uri=store.uri, registry_uri=store.uri)
        client.search_experiments(max_results=1)
    return client


def _make_database(path: Path) -> None:
    """Make MLflow's tables in a new sqlite file; call it under the store's lock."""
    from mlflow import MlflowClient

    making = path.with_name(f".{path.name}.new")
    shutil.rmtree(making, ignore_errors=True)  # what a kill left
    making.mkdir()
    address = f"sqlite:///{making / path.name}"
    MlflowClient(tracking_uri=address, registry_uri=address).search_experiments(max_results=1)
    (making / path.name).replace(path)
    making.rmdir()


def _experiment(client: MlflowClient, store: Store, name: str) -> str:
    """Return the id of the experiment, made under the lock when there is none."""
    with _locked(store):
        found = client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        return str(client.create_experiment(name, artifact_location=store.place(name), tags=_EXPERIMENT_TAGS))


def _parent(client: MlflowClient, store: Store, experiment: str) -> str:
    """Return the run that gathers this invocation's runs of one experiment.

    It is closed as soon as it exists: children attach to a closed run as well, and a kill cannot leave it open.
    """
    with _locked(store):
        found = client.search_runs([experiment], f"tags.`{_INVOCATION_TAG}` = '{store.invocation}'", max_results=1)
        if found:
            return str(found[0].info.run_id)
        tags = {_INVOCATION_TAG: store.invocation, "perfcast.kind": "invocation", **git_tags()}
        run = client.create_run(experiment, tags=tags, run_name=f"run {store.invocation}")
        client.set_terminated(run.info.run_id)
        return str(run.info.run_id)


@contextmanager
def parent_run(store: Store, experiment: str) -> Iterator[Run]:
    """Give the parent run of this invocation, for what belongs to no single training (figures, report)."""
    client = open_client(store)
    _close_abandoned(client)
    yield Run(client, _parent(client, store, _experiment(client, store, experiment)), store)


@contextmanager
def start_run(store: Store, experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[Run]:
    """Open a child run of this invocation; it ends FINISHED, or FAILED or KILLED when the block does not end well."""
    client = open_client(store)
    experiment_id = _experiment(client, store, experiment)
    _close_abandoned(client)
    everything = {
        **tags,
        **git_tags(),
        _PARENT_TAG: _parent(client, store, experiment_id),
        _PROCESS_TAG: _process_name(os.getpid()),
    }
    run = client.create_run(experiment_id, tags=everything, run_name=name)
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


def _process_name(pid: int) -> str:
    """Name a process of this boot of this machine, without naming the machine: boot, process, its start, machine."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    start = Path(f"/proc/{pid}/stat")
    started = start.read_text().rpartition(")")[2].split()[19] if start.exists() else "?"
    return f"{boot.read_text().strip()[:8] if boot.exists() else '?'}:{pid}:{started}:{_machine_digest()}"


def _machine_digest() -> str:
    """Tell machines apart, and containers of one: they have process numbers of their own; empty where nothing does."""
    path = Path("/etc/machine-id")
    known = path.read_text().strip() if path.exists() else ""
    return hashlib.sha256(f"perfcast {known} {platform.node()}".encode()).hexdigest()[:8] if known else ""


def _is_gone(process: str) -> bool:
    """Whether a process, by its name, ran on this machine and does not any more; False where that cannot be known."""
    if process.count(":") < 2:
        return False
    boot, pid, started, *machine = process.split(":")
    own_boot, _, _, own_machine = _process_name(os.getpid()).split(":")
    if machine and machine[0] != own_machine:
        return False
    if boot != own_boot:
        return bool(machine and own_machine)  # before this machine was started again
    return _process_name(int(pid)).split(":")[2] != started


def _close_abandoned(client: MlflowClient) -> None:
    """End runs of any experiment left RUNNING by processes of this machine that are gone: a kill gives them no time."""
    for run_id in _abandoned(client):
        client.set_terminated(run_id, status="KILLED")


def abandoned_runs(store: Store) -> int:
    """Count the runs of a store that are RUNNING by its record and by processes of this machine that are gone."""
    return len(_abandoned(open_client(store)))


def _abandoned(client: MlflowClient) -> list[str]:
    experiments = [one.experiment_id for one in client.search_experiments()]
    running = client.search_runs(experiments, "attributes.status = 'RUNNING'") if experiments else []
    return [run.info.run_id for run in running if _is_gone(run.data.tags.get(_PROCESS_TAG, ""))]


def register_champion(store: Store, dataset: str, run_id: str, model_uri: str, tags: Mapping[str, str]) -> str:
    """Register a logged model as the newest version of perfcast-<dataset>, alias `champion`; return the version."""
    client = open_client(store)
    name = f"perfcast-{dataset}"
    with _locked(store):
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


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flatten(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item
