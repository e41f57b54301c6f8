"""What changed in the data: the sources' files by checksum, and the tables row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.comparing.sides import Side
from perfcast.errors import UserError
from perfcast.io import read_object, sha256
from perfcast.schema import Tag
from perfcast.table_files import read_declarations, read_parquet

TABLES = ("standard", "features", "splits")
"""Folders of tables with one row per result; a split's rows say which part of a fold they are in."""


@dataclass(frozen=True)
class SourceChange:
    """One file of one source: its SHA-256 on either side; a state in words where there is no file."""

    source: str
    file: str
    before: str
    after: str


@dataclass(frozen=True)
class TableChange:
    """One table whose bytes differ: rows by key, and in how many shared rows each shared column differs.

    A table that only one side has holds `rows` None on the other, and nothing else.
    """

    table: str
    rows: tuple[int | None, int | None]
    added: int = 0
    removed: int = 0
    changed: int = 0
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_changed: Mapping[str, int] = field(default_factory=dict)


def source_changes(a: Side, b: Side) -> list[SourceChange]:
    """Return the files of sources that differ, by checksum."""
    before, after = _source_files(a.folder), _source_files(b.folder)
    return [
        SourceChange(*key, before.get(key, "absent"), after.get(key, "absent"))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]


def _source_files(folder: Path) -> dict[tuple[str, str], str]:
    found = {}
    for path in sorted((folder / "raw").glob("*/manifest.json")):
        about = read_object(path)
        found[path.parent.name, ""] = str(about.get("status", "present"))
        for file in about.get("files", ()):
            found[path.parent.name, str(file["name"])] = str(file["sha256"])
    return found


def table_changes(a: Side, b: Side) -> tuple[list[TableChange], int]:
    """Return the tables whose bytes differ, and the number of those with equal bytes."""
    before, after = _tables(a.folder), _tables(b.folder)
    changes, same = [], 0
    for name in sorted({*before, *after}, key=lambda name: (TABLES.index(name.split("/")[0]), name)):
        if name not in before or name not in after:
            rows = tuple(len(read_parquet(side[name])) if name in side else None for side in (before, after))
            changes.append(TableChange(name, (rows[0], rows[1])))
        elif sha256(before[name]) == sha256(after[name]):
            same += 1
        else:
            changes.append(_table_change(name, before[name], after[name]))
    return changes, same


def _tables(folder: Path) -> dict[str, Path]:
    return {
        str(path.relative_to(folder).with_suffix("")): path
        for name in TABLES
        for path in sorted((folder / name).rglob("*.parquet"))
    }


def _table_change(name: str, before: Path, after: Path) -> TableChange:
    old, new = (_keyed(path) for path in (before, after))
    shared = old.index.intersection(new.index)
    columns = [column for column in old.columns if column in new.columns]
    differs = pd.DataFrame({one: _differs(old.loc[shared, one], new.loc[shared, one]) for one in columns}, index=shared)
    counts = differs.sum()
    return TableChange(
        table=name,
        rows=(len(old), len(new)),
        added=len(new.index.difference(old.index)),
        removed=len(old.index.difference(new.index)),
        changed=int(differs.any(axis=1).sum()),
        columns_added=tuple(column for column in new.columns if column not in old.columns),
        columns_removed=tuple(column for column in old.columns if column not in new.columns),
        columns_changed={str(column): int(count) for column, count in counts.items() if count},
    )


def _keyed(path: Path) -> pd.DataFrame:
    """Read a table with its row key as index; a split's key is its only column that is no fold."""
    frame = read_parquet(path)
    try:
        declared = [one["name"] for one in read_declarations(path)["columns"] if Tag.ROW in one.get("tags", ())]
    except UserError:  # a split has no declarations, and another version's are not needed to find its rows
        declared = []
    keys = [*declared, *[column for column in frame.columns if not str(column).startswith("fold_")]]
    return frame.drop_duplicates(keys[0]).set_index(keys[0])


def _differs(old: pd.Series, new: pd.Series) -> np.ndarray:
    """Return where two aligned columns differ; two missing values are equal."""
    if old.dtype != new.dtype:
        old, new = old.astype("object"), new.astype("object")
    missing_old, missing_new = old.isna().to_numpy(), new.isna().to_numpy()
    unequal = (old != new).fillna(True).to_numpy(dtype=bool)
    return np.asarray((unequal & ~(missing_old & missing_new)) | (missing_old != missing_new))
