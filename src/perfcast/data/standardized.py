"""Result of every dataset module: a standardized table with its row accounting."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.schema.sequences import to_matrix
from perfcast.schema.table import Kind, Table, Tag, out_of_bounds
from perfcast.schema.table_files import write_table
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, write_json

REJECTED_COLUMNS = ["source", "file", "line", "reason", "detail"]
"""Columns of rejected.csv: position of the row, a short stable reason (snake_case), and the offending text."""


@dataclass(frozen=True)
class Standardized:
    """Standardized dataset with its row accounting.

    Every dataset satisfies `rows_in == len(table.frame) + rows_merged + len(rejected)`. `merged` counts folded rows
    by rule. `quality` holds the facts particular to the dataset, such as parse coverage per column, join coverage, and
    repaired rows by rule.
    """

    table: Table
    rejected: pd.DataFrame
    rows_in: int
    merged: dict[str, int] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)

    @property
    def rows_merged(self) -> int:
        """Number of rows folded into other rows."""
        return sum(self.merged.values())


def check_accounting(result: Standardized) -> None:
    """Check that every row is kept, merged or rejected.

    Raises: RuntimeError when rows do not add up, or values are outside their bounds.
    """
    accepted = len(result.table.frame)
    merged = result.rows_merged
    rejected = len(result.rejected)
    if result.rows_in != accepted + merged + rejected:
        raise RuntimeError(
            f"{result.table.dataset}: {result.rows_in} rows in, "
            f"but {accepted} kept + {merged} merged + {rejected} rejected"
        )
    outside = out_of_bounds(result.table).any()
    if outside.any():
        raise RuntimeError(f"{result.table.dataset}: values outside their bounds in {list(outside[outside].index)}")


def column_quality(table: Table) -> dict[str, dict[str, Any]]:
    """Return per column: share missing, distinct values, and smallest and largest value where they are ordered.

    A sequence has its number of steps instead of its distinct values.
    """
    facts: dict[str, dict[str, Any]] = {}
    for column in table.columns:
        values = table.frame[column.name]
        about = {"unit": column.unit, "group": column.group}
        if column.kind is Kind.SEQUENCE:
            numbers = to_matrix(values)
            missing = round(float(np.isnan(numbers).mean()), 6) if numbers.size else 0.0
            facts[column.name] = {"missing": missing, "steps": numbers.shape[1], **about}
            continue
        missing = round(float(values.isna().mean()), 6) if len(values) else 0.0
        entry: dict[str, Any] = {"missing": missing, "unique": int(values.nunique()), **about}
        known = values.dropna()
        if len(known) and column.kind is Kind.NUMERICAL:
            entry |= {"min": float(known.min()), "max": float(known.max())}
        elif len(known) and column.kind is Kind.DATE:
            entry |= {"min": f"{known.min():%Y-%m-%d}", "max": f"{known.max():%Y-%m-%d}"}
        facts[column.name] = entry
    return facts


def describe_quality(result: Standardized) -> dict[str, Any]:
    """Return the content of quality.json."""
    reasons: pd.Series = result.rejected["reason"].value_counts()
    return {
        "dataset": result.table.dataset,
        "rows_in": result.rows_in,
        "rows_kept": len(result.table.frame),
        "rows_excluded": int(result.table.frame[result.table.select(tag=Tag.EXCLUDED)].eq(1).any(axis=1).sum()),
        "merged": dict(result.merged),
        "rejected": {str(reason): int(count) for reason, count in reasons.items()},
        "columns": column_quality(result.table),
        "details": result.quality,
    }


def write_standardized(result: Standardized, table: Path, rejected: Path, quality: Path) -> None:
    """Check the accounting, then write the table, the rejected rows and the quality.

    Raises: UserError when no row is kept, or the table lacks a column that every stage reads.
    """
    check_accounting(result)
    for tag in (Tag.ROW, Tag.TASK, Tag.ENTITY):
        result.table.column_of(tag)
    if result.table.frame.empty:
        dataset = result.table.dataset
        reasons = result.rejected["reason"].value_counts()
        reason = f", {reasons.iloc[0]} of them as {reasons.index[0]}" if len(reasons) else ""
        raise UserError(
            f"the dataset {dataset!r} must have usable rows",
            f"none of its {result.rows_in} rows is kept{reason}",
            "ingest its sources again",
        )
    with atomic_path(rejected) as path:
        result.rejected[REJECTED_COLUMNS].to_csv(path, index=False, lineterminator="\n")
    write_json(quality, describe_quality(result))
    write_table(result.table, table)
