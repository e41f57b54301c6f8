"""What a machine can be described by, told to whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfcast.inference import Champion
from perfcast.inference.machine_fields import MachineFields
from perfcast.schema import Column


def vocabulary_of(champion: Champion) -> dict[str, list[dict[str, Any]]]:
    """Return fields and columns with their meaning; a column has its unit and bounds, a field an example."""
    vocabulary, types = champion.fields, champion.field_types()
    fields = {field.name: field for field in vocabulary.fields.values()}
    return {
        "fields": [
            {
                "name": name,
                "meaning": field.meaning,
                "example": field.example,
                "number": types[name] == "double",
                "unit": _unit(field.columns, vocabulary),
                "columns": list(field.columns),
                "aliases": list(field.aliases),
            }
            for name, field in fields.items()
        ],
        "columns": [_column(column, types[column.name] == "double") for column in vocabulary.columns.values()],
    }


def _unit(columns: Sequence[str], vocabulary: MachineFields) -> str:
    return vocabulary.columns[columns[0]].unit if len(columns) == 1 else ""


def _column(column: Column, number: bool) -> dict[str, Any]:
    return {
        "name": column.name,
        "group": column.group,
        "meaning": column.meaning,
        "number": number,
        "unit": column.unit,
        "low": column.low,
        "high": column.high,
    }
