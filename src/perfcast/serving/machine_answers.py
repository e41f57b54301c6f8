"""Answers about machines that only the server gives: their completed values, and the names that describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from perfcast.inference.cells import MISSING
from perfcast.inference.champion import Champion
from perfcast.inference.draws import complete_machines
from perfcast.inference.explain import list_values, name_machine
from perfcast.inference.machine_fields import name_group
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import parse_batch
from perfcast.inference.prediction import ESTIMATE, OK, REFUSED
from perfcast.schema.table import Role, select


def describe_champion(champion: Champion) -> dict[str, Any]:
    """Return the fields of an answer that describe the champion."""
    return {
        "dataset": champion.dataset,
        "champion": champion.name,
        "preset": champion.preset,
        "features": len(select(champion.predictor.columns_, role=Role.FEATURE)),
        "kind": ESTIMATE,
    }


def impute_batch(
    entries: Sequence[MachineEntry], champion: Champion, *, assume: bool, strict: bool
) -> list[dict[str, Any]]:
    """Return every machine with its completed values, as in `CompletedMachine`; one that cannot be used has none.

    Raises: see `parse_batch`.
    """
    batch = parse_batch(entries, champion, strict=strict)
    measured = champion.reference_data.measured
    if len(batch.refusals) == len(entries):
        raise batch.refusals[entries[0].line]
    completed = complete_machines(batch, champion, assume=assume)
    names, missing = list(completed.cells), completed.has_origin(MISSING)
    inputs = [column.name for column in measured.columns if column.role in (Role.FEATURE, Role.KEY)]
    results: dict[int, list[dict[str, Any]]] = {entry.line: [] for entry in entries}
    rows_of: dict[int, list[int]] = {}
    for row, key in enumerate(completed.cells.index.tolist()):
        rows_of.setdefault(key, []).append(row)
    for key, rows in sorted(rows_of.items()):
        row = rows[0]
        result = {
            "machine": name_machine({name: values[row] for name, values in completed.cells.items()}, measured),
            "values": [asdict(value) for value in list_values(completed, rows, measured)],
            "unknown": [name for name in inputs if missing[row, names.index(name)]],
            "notes": list(batch.notes.get(key, ())),
        }
        results[batch.line_of(key)].append({**result, "status": OK, "message": ""})
    refused: dict[str, Any] = {"values": [], "unknown": [], "notes": [], "status": REFUSED}
    for entry in entries:
        if entry.line in batch.refusals:
            results[entry.line] = [{"machine": entry.label, **refused, "message": str(batch.refusals[entry.line])}]
    return [{"line": line, **result} for line, listed in results.items() for result in listed]


def describe_fields(champion: Champion) -> dict[str, list[dict[str, Any]]]:
    """Return fields and columns with meaning, unit, and bounds or an example, as in `FieldsResponse`."""
    types, columns = champion.field_types(), champion.fields.columns
    capacities = {**champion.rules.capacities, **champion.rules.largest_values}

    def describe(name: str, meaning: str, column: str | None) -> dict[str, Any]:
        unit, capacity = (columns[column].unit, capacities.get(column)) if column else ("", None)
        return {"name": name, "meaning": meaning, "number": types[name] == "double", "unit": unit, "capacity": capacity}

    fields = []
    for name, field in {field.name: field for field in champion.fields.fields.values()}.items():
        filled = list(field.columns)
        described = describe(name, field.meaning, filled[0] if len(filled) == 1 else None)
        fields.append({**described, "example": field.example, "columns": filled, "aliases": list(field.aliases)})
    listed = [
        {**describe(name, column.meaning, name), "group": name_group(column), "low": column.low, "high": column.high}
        for name, column in columns.items()
    ]
    return {"fields": fields, "columns": listed}
