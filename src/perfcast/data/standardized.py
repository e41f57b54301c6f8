"""Result of every dataset module: a standardized table with its row accounting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from perfcast.schema.table import Table

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
