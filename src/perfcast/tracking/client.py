"""A client of the tracking store: it makes a new store, and follows a project that was moved or copied."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from perfcast.tracking.store import Store, locked
from perfcast.tracking.store_check import check_store

if TYPE_CHECKING:
    from mlflow import MlflowClient

_SETTINGS = {
    # a server that stops to answer costs ten seconds; what it lacks is recorded later
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


def rewrite_moved(database: Path, artifacts: Path) -> int:
    """Rewrite addresses of artifacts to the present folder of artifacts; return the number of changes.

    A moved project takes over every address. A copied one takes over the addresses of the files that it has as well,
    and new runs go to its own folder. In a database that lies elsewhere only addresses of a folder that is gone change.
    Raises: sqlite3.Error when the file is no database.
    """
    with closing(sqlite3.connect(database, timeout=10)) as base, base:
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


def open_client(store: Store) -> MlflowClient:
    """Return a client of the store, made and migrated first when it is new.

    Processes race in the migrations of a fresh sqlite file, so the first access is under a file lock. A kill during
    migrations leaves tables that no later process can use, so a new file gets its name when it is whole.

    Raises: UserError within five seconds when the store cannot be used.
    """
    check_store(store)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    # it logs pages of traceback for what it raises as well
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)

    database = Path(store.uri.removeprefix("sqlite:///")) if store.uri.startswith("sqlite:///") else None
    if database:
        database.parent.mkdir(parents=True, exist_ok=True)
    with locked(store):
        for left in database.parent.glob(f".{database.name}.*") if database else ():  # what a kill left
            shutil.rmtree(left, ignore_errors=True)
        if database and database.is_file():
            rewrite_moved(database, store.artifacts)
        elif database:
            _make_database(database, store)
        client = MlflowClient(tracking_uri=store.uri, registry_uri=store.uri)
        client.search_experiments(max_results=1)
    return client


def _make_database(path: Path, store: Store) -> None:
    """Make MLflow's tables in a new sqlite file; call it under the store's lock."""
    from mlflow import MlflowClient

    for suffix in ("-journal", "-wal", "-shm"):  # sqlite would repeat or undo changes of a file that was deleted
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as making:
        new = Path(making) / path.name
        address = f"sqlite:///{new}"
        MlflowClient(tracking_uri=address, registry_uri=address).search_experiments(max_results=1)
        with closing(sqlite3.connect(new)) as base, base:  # MLflow's own experiment is below the working folder
            base.execute(
                "update experiments set artifact_location = ? where name = 'Default'", (store.place("Default"),)
            )
        new.replace(path)
