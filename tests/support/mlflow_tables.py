"""MLflow's tables, made by MLflow once: each further new sqlite file of these tests gets a copy of them.

MLflow makes them in 50 migrations, each of which waits for the disk: a second of processor time and several of waiting.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def remember_tables(made: Path) -> None:
    """Let MLflow write the tables that it makes first to a file, and take them from there afterwards."""
    from mlflow.store.db import utils

    make = utils._initialize_tables

    def make_or_copy(engine: Any) -> None:
        address = engine.url.database
        is_file = engine.dialect.name == "sqlite" and address
        if is_file and made.exists():
            _copy(made, Path(address))
            return
        make(engine)
        if is_file:
            new = made.with_name(f"{made.name}.{os.getpid()}")
            _copy(Path(address), new)
            new.replace(made)

    utils._initialize_tables = make_or_copy


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as before, closing(sqlite3.connect(target)) as after:
        before.backup(after)
