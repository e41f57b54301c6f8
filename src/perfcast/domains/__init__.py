"""Domains: kinds of measured things, each with its data, splits, features, predictors and commands.

Domains have facts, names and the declarations of their columns as CSV files beside their modules.
"""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfcast.schema.table import Column


def read_table(package: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of a package by column name."""
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def read_columns(package: str, name: str, table: str = "") -> tuple[Column, ...]:
    """Return the declarations in a CSV file in its order, of a file with several tables those of one.

    A column that differs between tables has one row for each of its forms; `all` stands for every table.
    """
    # the commands import every domain, and most of them need no table
    from perfcast.schema.table import Column, Kind, Role, Tag

    return tuple(
        Column(
            row["name"],
            Kind(row["kind"]),
            Role(row["role"]),
            row["group"],
            row["unit"],
            row["meaning"],
            json.loads(row["low"] or "null"),
            json.loads(row["high"] or "null"),
            tuple(map(Tag, row["tags"].split())),
        )
        for row in read_table(package, name)
        if not table or {table, "all"} & set(row["tables"].split())
    )
