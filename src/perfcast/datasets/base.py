"""What every data set module returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from perfcast.schema import Table

REJECTED_COLUMNS = ["source", "file", "line", "reason", "detail"]
"""Columns of rejected.csv: where the row was, a short stable reason (snake_case), and the offending text."""


@dataclass(frozen=True)
class Standardized:
    """One standardised data set with its row accounting.

    `rows_in == len(table.frame) + rows_merged + len(rejected)` holds for every data set; `merged` says by which rule
    rows were folded into others (rule -> rows). `quality` holds what is particular to the data set: parse coverage
    per column, join coverage, repairs made (rule -> rows).
    """

    table: Table
    rejected: pd.DataFrame
    rows_in: int
    merged: dict[str, int] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)

    @property
    def rows_merged(self) -> int:
        """Rows folded into other rows."""
        return sum(self.merged.values())
