"""Answers about machines that only the server gives: their completed values, and the names that describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from perfcast.inference.batch import parse_batch
from perfcast.inference.champion import Champion
from perfcast.inference.completed import MISSING
from perfcast.inference.draw_predictions import complete_machines
from perfcast.inference.explain import list_values, name_machine
from perfcast.inference.machine_fields import name_group
from perfcast.inference.machine_files import MachineEntry
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
    keys = completed.cells.index.tolist()
    refused: dict[str, Any] = {"values": [], "unknown": [], "notes": [], "status": REFUSED}
    results: dict[int, list[dict[str, Any]]] = {entry.line: [] for entry in entries}
    rows_of: dict[int, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)
    for key, rows in sorted(rows_of.items()):
        row = rows[0]
        results[batch.line_of(key)].append(
            {
                "machine": name_machine({name: values[row] for name, values in completed.cells.items()}, measured),
                "values": [asdict(value) for value in list_values(completed, rows, measured)],
                "unknown": [name for name in inputs if missing[row, names.index(name)]],
                "notes": list(batch.notes.get(key, ())),
                "status": OK,
                "message": "",
            }
        )
    for entry in entries:
        if entry.line in batch.refusals:
            results[entry.line] = [{"machine": entry.label, **refused, "message": str(batch.refusals[entry.line])}]
    return [{"line": line, **result} for line, listed in results.items() for result in listed]


def describe_fields(champion: Champion) -> dict[str, list[dict[str, Any]]]:
    """Return fields and columns with meaning, unit, and bounds or an example, as in `FieldsResponse`."""
    machine_fields, types = champion.fields, champion.field_types()
    capacities = {**champion.rules.capacities, **champion.rules.largest_values}
    fields = {field.name: field for field in machine_fields.fields.values()}
    return {
        "fields": [
            {
                "name": name,
                "meaning": field.meaning,
                "example": field.example,
                "number": types[name] == "double",
                "unit": machine_fields.columns[field.columns[0]].unit if len(field.columns) == 1 else "",
                "columns": list(field.columns),
                "capacity": capacities.get(field.columns[0]) if len(field.columns) == 1 else None,
                "aliases": list(field.aliases),
            }
            for name, field in fields.items()
        ],
        "columns": [
            {
                "name": column.name,
                "group": name_group(column),
                "meaning": column.meaning,
                "number": types[column.name] == "double",
                "unit": column.unit,
                "low": column.low,
                "high": column.high,
                "capacity": capacities.get(column.name),
            }
            for column in machine_fields.columns.values()
        ],
    }
