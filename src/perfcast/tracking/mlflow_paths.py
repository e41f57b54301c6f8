"""Paths of artifacts in MLflow's sqlite store, rewritten after the project's folder was moved: the store has absolute
paths only.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

_PLACES = {
    "experiments": "artifact_location",
    "runs": "artifact_uri",
    "logged_models": "artifact_location",
    "model_versions": "storage_location",
}
"""Columns of artifact addresses in MLflow's database, by table."""


def rewrite_moved(database: Path, artifacts: Path) -> int:
    """Rewrite addresses below a folder that is gone to the present folder of artifacts; return the number of changes.

    Addresses of an existing folder stay: a copied project leaves the original's alone, and its new runs go to its own
    folder. Raises: sqlite3.Error when the file is no database.
    """
    with closing(sqlite3.connect(database, timeout=60)) as base, base:
        if not _columns(base, "experiments"):
            return 0
        located = base.execute("select name, artifact_location from experiments").fetchall()
        moved = {
            where.removesuffix(f"/{name}")
            for name, where in located
            if where and where.endswith(f"/{name}") and not _path(where.removesuffix(f"/{name}")).exists()
        }
        return sum(_rewrite(base, old, artifacts.as_uri()) for old in sorted(moved) if old.startswith("file:"))


def _rewrite(base: sqlite3.Connection, old: str, new: str) -> int:
    changed = 0
    for table, column in _PLACES.items():
        if column in _columns(base, table):
            # the names of tables and columns are those above
            change = f"update {table} set {column} = ? || substr({column}, ?) where substr({column}, 1, ?) = ?"
            changed += base.execute(change, (new, len(old) + 1, len(old) + 1, f"{old}/")).rowcount
    return changed


def _columns(base: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in base.execute(f"pragma table_info({table})")]


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
