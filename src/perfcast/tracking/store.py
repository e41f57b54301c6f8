"""The tracking store: its configuration, its locks, and lines about its faults."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.utils.errors import UserError, printable, unknown_name

if TYPE_CHECKING:
    from filelock import BaseFileLock


_SHORT_WAIT, _LONG_WAIT = 5, 300
"""Time that a lock is waited for, without and with a line about it. Units: seconds."""
RECORD = "record.json"
"""File of a training's folder that is recorded: parameters, metrics, tags and digests, without times."""


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
    """Return one of the store's locks, a context manager: `store` for a write, `record` for a pass over results.

    Raises: UserError, on entering, when another process holds it for too long.
    """
    from filelock import FileLock

    store.artifacts.mkdir(parents=True, exist_ok=True)
    return _bounded(FileLock(store.artifacts.parent / f"{name}.lock"))


@contextmanager
def _bounded(lock: BaseFileLock) -> Iterator[None]:
    """Hold a lock that others hold for a moment each; say so when it takes longer."""
    from filelock import Timeout

    try:
        lock.acquire(timeout=_SHORT_WAIT)
    except Timeout:
        print("perfcast: tracking: waiting for another process that records", file=sys.stderr, flush=True)
        try:
            lock.acquire(timeout=_LONG_WAIT)
        except Timeout:
            fact = f"another process has held {lock.lock_file} for {_LONG_WAIT} s"
            raise UserError("one process at a time may record", fact, "end it") from None
    try:
        yield
    finally:
        lock.release()


def explain_failure(error: BaseException) -> str:
    """Return what a store, a driver or a server raised as one short line."""
    if isinstance(error, UserError):
        return printable(f"{error.fact}; {error.remedy}" if error.remedy else error.fact)
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


def warn_unrecorded(error: BaseException) -> None:
    """Print one line about a record that was not written."""
    print(f"perfcast: tracking: {explain_failure(error)}; the results are kept", file=sys.stderr, flush=True)
