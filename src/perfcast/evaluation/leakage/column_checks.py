"""Leakage checks of what models know: the roles of columns and the dates of announced gains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.processors.announcements import announced_index, announced_power_index, core_table, process_table
from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, LeakageCheck, join_names, training_mask
from perfcast.schema.table import Kind, Role, Tag
from perfcast.utils.io import read_json, read_object


def check_column_roles(artifacts: Artifacts) -> CheckReport:
    """Compare the column declarations of the standard table, the features table and every stored model."""
    before = {column.name: column for column in artifacts.standard}
    roles = {column.name: column.role for column in artifacts.table.columns}
    changed = [
        column.name
        for column in artifacts.table.columns
        if column.role is Role.FEATURE and before.get(column.name, column).role is not Role.FEATURE
    ]
    findings = [
        f"{name} is {before[name].role} in the standard table and a feature in the features table" for name in changed
    ]
    models = 0
    for run in artifacts.runs:
        for model in _models(run.folder / "model"):
            models += 1
            features_read = [entry["name"] for entry in model["columns"] if entry["role"] == Role.FEATURE]
            wrong = sorted({name for name in features_read if roles.get(name) not in (Role.FEATURE, None)})
            unknown = sorted(set(features_read) - set(roles))
            if wrong:
                findings.append(f"{run.name} reads {join_names(wrong)}, which the table declares {roles[wrong[0]]}")
            if unknown:
                findings.append(f"{run.name} reads {join_names(unknown)}, which the table does not have")
    features = sum(role is Role.FEATURE for role in roles.values())
    return CheckReport(f"{features} features, {models} stored models", tuple(dict.fromkeys(findings)))


def _models(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield predictor.json of every model of a run, components of a combined one included."""
    yield from (read_object(path) for path in sorted(folder.rglob("predictor.json")))


INDICES: Mapping[str, Callable[[pd.Timestamp], dict[str, float]]] = {
    "clock_gains": announced_index,
    "power_gains": announced_power_index,
}
"""Names of announced levels in model files, and the function that returns them for a given day."""


def check_announcements(artifacts: Artifacts) -> CheckReport:
    """Compare every announced level in the JSON files of a model with those announced before its last training row.

    The stored model is that of the first fold. Its knowledge may end earlier, so it is compared with every earlier
    day of an announcement.
    """
    times = artifacts.table.select(tag=Tag.TIME, kind=Kind.DATE)
    if not times:
        return CheckReport("no dates, so announcements are not limited")
    dates = [one.announced for table in (core_table(), process_table()) for one in table.values()]
    days = sorted({day for day in dates if day is not None})
    count = 0
    findings = []
    for run in artifacts.runs:
        stored = list(_stored(run.folder / "model"))
        if not stored:
            continue
        folds = artifacts.folds(run.split)
        last = artifacts.table.frame.loc[training_mask(folds, folds.columns[0]), times[0]].max()
        for name, levels in stored:
            count += 1
            known = [INDICES[name](day) for day in [*(day for day in days if day <= last), last]]
            if levels not in known:
                wrong = sorted(core for core, level in levels.items() if known[-1].get(core) != level)
                findings.append(
                    f"{run.name}: {join_names(wrong)} {'has' if len(wrong) == 1 else 'have'} gains not announced "
                    f"by {last:%Y-%m}"
                )
    return CheckReport(f"{count} tables of announced gains in stored models", tuple(dict.fromkeys(findings)))


def _stored(folder: Path) -> Iterator[tuple[str, dict[str, float]]]:
    for path in sorted(folder.rglob("*.json")):
        yield from _announced_levels(read_json(path))


def _announced_levels(value: Any) -> Iterator[tuple[str, dict[str, float]]]:
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in INDICES and isinstance(inner, dict) and inner and set(inner) <= set(core_table()):
            yield key, inner
        else:
            yield from _announced_levels(inner)


COLUMN_ROLES = LeakageCheck(
    "column roles",
    "a column declared target or provenance may not be a feature of the table or of a model",
    "declare its role again, or take it out of the features and train again",
    check_column_roles,
)
ANNOUNCEMENTS = LeakageCheck(
    "announcements",
    "a model may use only gains that vendors announced before its last training row",
    "train the run again",
    check_announcements,
)
