"""Does anything that was declared a target, a key or a provenance act as a feature?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfcast.audit.base import Evidence, Looked, some
from perfcast.io import read_object
from perfcast.schema import Column, Role

MEANING = "what is declared a target or provenance may be no feature, neither of the table nor of a model"
REMEDY = "declare its role again, or take it out of the features and train again"


def look(evidence: Evidence) -> Looked:
    """Hold the declarations of the standard table, the features table and every stored model against each other."""
    before = {column.name: column for column in evidence.standard}
    roles = {column.name: column.role for column in evidence.table.columns}
    changed = [
        column.name
        for column in evidence.table.columns
        if column.role is Role.FEATURE and _is_other(before.get(column.name))
    ]
    found = [
        f"{name} is {before[name].role} in the standard table and a feature in the features table" for name in changed
    ]
    models = 0
    for run in evidence.runs:
        for about in _models(run.folder / "model"):
            models += 1
            read = [entry["name"] for entry in about["columns"] if entry["role"] == Role.FEATURE]
            wrong = sorted({name for name in read if roles.get(name) not in (Role.FEATURE, None)})
            unknown = sorted(set(read) - set(roles))
            if wrong:
                found.append(f"{run.name} reads {some(wrong)}, which the table declares {roles[wrong[0]]}")
            if unknown:
                found.append(f"{run.name} reads {some(unknown)}, which the table does not have")
    features = sum(role is Role.FEATURE for role in roles.values())
    return Looked(f"{features} features, {models} stored models", tuple(dict.fromkeys(found)))


def _is_other(column: Column | None) -> bool:
    return column is not None and column.role is not Role.FEATURE


def _models(folder: Path) -> Iterator[dict[str, Any]]:
    """Give what every model of a run says of itself, the parts of a combined one too."""
    yield from (read_object(path) for path in sorted(folder.rglob("predictor.json")))
