"""The tracking store: its configuration, its lock, a client that makes a new store, and paths of a moved project."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from perfcast.utils.errors import UserError, unknown_name

if TYPE_CHECKING:
    from mlflow import MlflowClient


RECORD = "record.json"
"""File of a training's folder that is recorded: parameters, metrics, tags and digests, without times."""
_PLACES = {
    "experiments": "artifact_location",
    "runs": "artifact_uri",
    "logged_models": "artifact_location",
    "model_versions": "storage_location",
}
"""Columns of artifact addresses in MLflow's database, by table."""


def rewrite_moved(database: Path, artifacts: Path) -> int:
    """Rewrite addresses of artifacts to the present folder of artifacts; return the number of changes.

    A moved project takes over every address. A copied one takes over the addresses of the files that it has as well,
    and new runs go to its own folder. In a database that lies elsewhere only addresses of a folder that is gone change.
    Raises: sqlite3.Error when the file is no database.
    """
    with closing(sqlite3.connect(database, timeout=60)) as base, base:
        if not _columns(base, "experiments"):
            return 0
        located = base.execute("select name, artifact_location from experiments").fetchall()
        roots = {where.removesuffix(f"/{name}") for name, where in located if where and where.endswith(f"/{name}")}
        foreign = {root for root in roots if root.startswith("file:")} - {artifacts.as_uri()}
        owned = database.parent.resolve() == artifacts.parent.resolve()
        return sum(_rewrite(base, root, artifacts, owned=owned) for root in sorted(foreign))


def _rewrite(base: sqlite3.Connection, old: str, artifacts: Path, *, owned: bool) -> int:
    """Rewrite the addresses below one folder. Keep those of runs and models whose files lie in that folder alone."""
    gone, changed = not _path(old).exists(), 0
    if not (gone or owned):
        return 0
    for table, column in _PLACES.items():
        if column not in _columns(base, table):
            continue
        # the names of tables and columns are those above
        query = f"select distinct {column} from {table} where substr({column}, 1, ?) = ?"
        for (address,) in base.execute(query, (len(old) + 1, f"{old}/")).fetchall():
            new = artifacts.as_uri() + address[len(old) :]
            if gone or table == "experiments" or _path(new).exists():
                changed += base.execute(f"update {table} set {column} = ? where {column} = ?", (new, address)).rowcount
    return changed


def _columns(base: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in base.execute(f"pragma table_info({table})")]


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


_SETTINGS = {
    # a server that does not answer costs seconds, not minutes
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}


@dataclass(frozen=True)
class Store:
    """Place of the records.

    `uri` is an MLflow tracking URI; `artifacts` a folder for a database's files, of this project's lock in any case;
    `bucket` a URI where they go instead, such as s3://...; a server keeps its own. `invocation` names the command that
    made the runs. `live` streams learning curves of running trainings, `system_metrics` the load of the machine too.
    """

    uri: str
    artifacts: Path
    invocation: str
    bucket: str = ""
    live: bool = False
    system_metrics: bool = False

    def place(self, experiment: str) -> str | None:
        """Return the place of an experiment's files; None where the server decides."""
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
    artifacts = environment.get("PERFCAST_ARTIFACTS") or str(conf["artifacts"])
    bucket = artifacts.rstrip("/") if "://" in artifacts else ""
    folder = (root / (str(conf["artifacts"]) if bucket else artifacts)).resolve()
    options = {name: bool(conf.get(name, False)) for name in ("live", "system_metrics")}
    return Store(uri, folder, stamp, bucket, **options)


def _check(conf: Mapping[str, Any]) -> None:
    where = "conf/tracking/default.yaml"
    kinds: dict[str, tuple[type, str]] = {"uri": (str, "text"), "artifacts": (str, "text")}
    kinds |= dict.fromkeys(("enabled", "live", "system_metrics"), (bool, "true or false"))
    if not isinstance(conf, Mapping):
        raise UserError(f"{where} must be a mapping of keys to values", f"found {type(conf).__name__}")
    for key, value in conf.items():
        if key not in kinds:
            raise unknown_name(f"a key of {where}", str(key), kinds)
        kind, words = kinds[key]
        if not isinstance(value, kind):
            raise UserError(f"{key!r} in {where} must be {words}", f"found {value!r:.80}", f"edit {where}")
    if conf.get("system_metrics") and not conf.get("live"):
        raise UserError(f"'system_metrics' in {where} must have live: true", "live is false", f"edit {where}")
    if missing := [key for key in ("uri", "artifacts") if key not in conf]:
        raise UserError(f"{where} must have the key {missing[0]!r}", "it is missing", f"edit {where}")


def locked(store: Store, name: str = "store") -> AbstractContextManager[Any]:
    """Return one of the store's locks, a context manager: `store` for a write, `record` for a pass over results."""
    from filelock import FileLock

    store.artifacts.mkdir(parents=True, exist_ok=True)
    return FileLock(store.artifacts.parent / f"{name}.lock")


def explain_failure(error: BaseException) -> str:
    """Return what a store, a driver or a server raised as one short line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


def warn_unrecorded(error: BaseException) -> None:
    """Print one line about a record that was not written."""
    print(f"perfcast: tracking: {explain_failure(error)}; the results are kept", file=sys.stderr, flush=True)


def open_client(store: Store) -> MlflowClient:
    """Return a client of the store, made and migrated first when it is new.

    Processes race in the migrations of a fresh sqlite file, so the first access is under a file lock. A kill during
    migrations leaves tables that no later process can use, so a new file gets its name when it is whole.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    # it logs pages of traceback for what it raises as well
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)

    database = Path(store.uri.removeprefix("sqlite:///")) if store.uri.startswith("sqlite:///") else None
    if database:
        database.parent.mkdir(parents=True, exist_ok=True)
    with locked(store):
        if database and database.is_file():
            rewrite_moved(database, store.artifacts)
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
