"""Check of seconds that a tracking store can be used: MLflow itself waits minutes for one that does not answer."""

from __future__ import annotations

import http.client
import os
import sqlite3
import ssl
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

from perfcast.config.conf_files import read_yaml
from perfcast.tracking.store import Store, explain_failure, store_from
from perfcast.utils.errors import UserError

_SECONDS = 3.0
_LOCK_SECONDS = 2.0
_DATABASES = ("postgresql", "mysql", "mssql")
_UNCHECKED = ("file", "databricks", "databricks-uc", "uc")
_REQUIREMENT = "the tracking store must be usable"


def check_store(store: Store) -> None:
    """Ask a store for an answer, and its folders for a file, within five seconds.

    Raises: UserError when the store cannot be used.
    """
    errors: list[Exception] = []

    def check() -> None:
        try:
            _find_check(store)()
            if not store.bucket:
                _expect_writable(store.artifacts)
        except Exception as error:  # whatever a driver or a server raises
            errors.append(error)

    # neither names of hosts nor file systems that hang have a time limit of their own
    thread = threading.Thread(target=check, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if thread.is_alive():
        raise UserError(_REQUIREMENT, f"no answer in {_SECONDS:g} s from {_place(store)}", _remedy(store))
    if errors:
        raise UserError(_REQUIREMENT, f"{explain_failure(errors[0])} ({_place(store)})", _remedy(store, errors[0]))


def warn_unusable(project: Path, environment: Mapping[str, str]) -> None:
    """Print one line at the start of a run whose store cannot be used; the run goes on."""
    try:
        store = store_from(read_yaml(project / "conf" / "tracking" / "default.yaml"), project, environment)
        if store is not None:
            check_store(store)
    except UserError as error:
        fault = explain_failure(error)
        print(f"perfcast: tracking: {fault}. The run goes on, and keeps its results.", file=sys.stderr, flush=True)


def _place(store: Store) -> str:
    """Return the address of a store without user and password."""
    scheme, _, address = store.uri.partition("://")
    return f"{scheme}://{address.rpartition('@')[2]}"


def _remedy(store: Store, error: Exception | None = None) -> str:
    if not store.uri.startswith("sqlite:///"):
        return "start the server, or unset MLFLOW_TRACKING_URI"
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return "move the damaged file away, a new one is made"
    return "end the program that holds it, or repair its folder"


def _find_check(store: Store) -> Callable[[], None]:
    """Return the check of a kind of store. Raises: ValueError for an address that MLflow does not know."""
    scheme = store.uri.partition(":")[0] if ":" in store.uri else "file"
    if scheme == "sqlite":
        return lambda: _open_sqlite(Path(store.uri.removeprefix("sqlite:///")))
    if scheme in ("http", "https"):
        return lambda: _ask_server(_place(store))
    if scheme.partition("+")[0] in _DATABASES:
        return lambda: _connect_database(store.uri)
    known = {*_UNCHECKED, *(entry.name for entry in entry_points(group="mlflow.tracking_store"))}
    if scheme not in known:
        raise ValueError(f"MLflow knows no store of the kind {scheme!r}")
    return lambda: None


def _open_sqlite(path: Path) -> None:
    """Read the tables of a database and lock it for a moment; a new one needs a folder alone."""
    _expect_writable(path.parent)
    if path.exists():
        with closing(sqlite3.connect(path, timeout=_LOCK_SECONDS)) as base:
            base.execute("select count(*) from sqlite_master").fetchone()
            base.execute("begin immediate")
            base.rollback()


def _expect_writable(folder: Path) -> None:
    """Make a nameless file in a folder, or in the nearest one that is there. Raises: OSError."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


def _ask_server(address: str) -> None:
    """Ask a server for its health. Any answer but an error of the server is one. Raises: OSError."""
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE  # no secret is sent; MLflow knows its certificates
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=_SECONDS, context=anyone):
            pass
    except urllib.error.HTTPError as error:
        if error.code >= http.client.INTERNAL_SERVER_ERROR:
            raise OSError(f"the server answers {error.code}") from error
    except urllib.error.URLError as error:
        raise OSError(str(error.reason)) from error


def _connect_database(address: str) -> None:
    """Connect once, with the driver that the address names."""
    from sqlalchemy import create_engine

    engine = create_engine(address)
    engine.connect().close()
    engine.dispose()
