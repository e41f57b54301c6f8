"""Changes of what results are made from: data, code and parameters."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation.results_diff.sides import Side
from perfcast.schema.table import Tag
from perfcast.schema.table_files import read_declarations, read_parquet
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object, sha256
from perfcast.utils.result_digests import verify_digest
from perfcast.utils.safe_yaml import read_mapping

TABLES = ("standard", "features", "splits")
"""Folders of tables with one row per result; the rows of a split name the subset of each fold."""


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
    digests = {}
    for path in sorted((folder / "raw").glob("*/manifest.json")):
        about = read_object(path)
        digests[path.parent.name, ""] = str(about.get("status", "present"))
        for file in about.get("files", ()):
            digests[path.parent.name, str(file["name"])] = str(file["sha256"])
    return digests


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
    differs = pd.DataFrame(
        {name: _differs(old.loc[shared, name], new.loc[shared, name]) for name in columns}, index=shared
    )
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
        declared = [
            column["name"] for column in read_declarations(path)["columns"] if Tag.ROW in column.get("tags", ())
        ]
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


WATCHED = ("src", "conf", "workflow", "Snakefile", "pyproject.toml", "requirements.lock")
"""Files that can change results; tests and documentation cannot."""


@dataclass(frozen=True)
class CodeChange:
    """One file with its added and removed lines (None: not counted), or one dependency of another digest."""

    path: str
    added: int | None = None
    removed: int | None = None


def code_changes(a: Side, b: Side, project: Path) -> tuple[list[CodeChange], str]:
    """Return what differs and its origin in words; no change may also mean that nothing is recorded."""
    if a.commit and b.commit:
        if a.commit == b.commit:
            return [], f"both are commit {a.commit[:7]}"
        return _numstat(project, a.commit, b.commit), f"git diff {a.commit[:7]} {b.commit[:7]}"
    if a.lock is None or b.lock is None:
        unrecorded = " and ".join(side.label for side in (a, b) if side.lock is None)
        return [], f"not recorded: no dvc.lock has {unrecorded}"
    before, after = a.lock.code, b.lock.code
    changed = [CodeChange(path) for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return changed, "digests that dvc.lock recorded"


def _numstat(project: Path, before: str, after: str) -> list[CodeChange]:
    command = ["git", "-C", str(project), "diff", "--numstat", "--no-renames", before, after, "--", *WATCHED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    changes = []
    for line in done.stdout.splitlines():
        added, removed, path = line.split("\t")
        counts = [None if count == "-" else int(count) for count in (added, removed)]
        changes.append(CodeChange(path, *counts))
    return sorted(changes, key=lambda change: (-(change.added or 0) - (change.removed or 0), change.path))


ABSENT = "(none)"
EXPERIMENT = "experiment"
_EVALUATION_KEYS = ("resamples", "seed", "level")
"""Parameters in the summary of an evaluation."""


@dataclass(frozen=True)
class ParameterChange:
    """One key with its values on either side, ABSENT where a side has none, and the runs (or what else) it is of."""

    key: str
    before: Any
    after: Any
    where: tuple[str, ...]


def parameter_changes(a: Side, b: Side) -> list[ParameterChange]:
    """Return every key whose value differs: the experiment's first, then those of shared runs, equal ones together."""
    changes: dict[tuple[str, str, str], ParameterChange] = {}
    experiment = _differences(_experiment(a), _experiment(b)) if a.lock and b.lock else {}
    for key, (before, after) in experiment.items():
        _add(changes, key, before, after, EXPERIMENT)
    before_summaries, after_summaries = a.summaries(), b.summaries()
    for dataset in sorted({*before_summaries} & {*after_summaries}):
        parameters = [
            {key: summaries[dataset].get(key, ABSENT) for key in _EVALUATION_KEYS}
            for summaries in (before_summaries, after_summaries)
        ]
        for key, (before, after) in _differences(*parameters).items():
            if key not in experiment:
                _add(changes, f"evaluation.{key}", before, after, dataset)
    before_runs, after_runs = _runs(a.folder), _runs(b.folder)
    for run in sorted({*before_runs} & {*after_runs}):
        differences = _differences(_run_config(before_runs[run]), _run_config(after_runs[run]))
        for key, (before, after) in differences.items():
            if key not in experiment:  # `preset` and `seeds` of the experiment are in every run's file as well
                _add(changes, key, before, after, run)
    return list(changes.values())


def _add(changes: dict[tuple[str, str, str], ParameterChange], key: str, before: Any, after: Any, where: str) -> None:
    known = changes.get((key, repr(before), repr(after)))
    runs = (*known.where, where) if known else (where,)
    changes[key, repr(before), repr(after)] = ParameterChange(key, before, after, runs)


def _experiment(side: Side) -> dict[str, Any]:
    return dict(_flat(side.lock.params)) if side.lock else {}


def _runs(folder: Path) -> dict[str, Path]:
    paths = sorted((folder / "runs").glob("*/*/*/config.yaml"))
    return {str(path.parent.relative_to(folder / "runs")): path for path in paths}


def _run_config(path: Path) -> dict[str, Any]:
    """Return a run's configuration as dotted keys.

    A predictor with one setting has it under the name of its preset. That name is left out, so that values compare
    between presets.
    """
    verify_digest(path)
    config = read_mapping(path.read_text(encoding="utf-8", errors="replace"), str(path))
    settings = config.get("predictor", {}).get("settings")
    if isinstance(settings, Mapping) and len(settings) == 1:
        config["predictor"]["settings"] = next(iter(settings.values()))
    return dict(_flat(config))


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    keys = [*before, *[key for key in after if key not in before]]
    pairs = {key: (before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
