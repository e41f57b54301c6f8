"""Files of folds, written and read with the table of their rows, so that no row gets another one's subset."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.splits.subsets import SUBSETS
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path

BASE = "base"
"""Attribute of a file of folds: the base of a learning-curve split. Absent for other splits."""

_REMEDY = "run snakemake to make it again"


def write_folds(path: Path, folds: pd.DataFrame, table: Table, base: str | None = None) -> None:
    """Write folds with the key of their rows, and the base of a learning-curve split."""
    row = table.column_of(Tag.ROW)
    written = folds.assign(**{row: table.frame[row]})[[row, *folds.columns]]
    if base is not None:
        written.attrs[BASE] = base
    with atomic_path(path) as temporary:
        written.to_parquet(temporary, index=False)


def read_folds(path: Path, table: Table | None = None) -> pd.DataFrame:
    """Read what `write_folds` wrote: the columns fold_0, fold_1 and so on, with the file's attributes.

    Shapes: one row per row of `table`, in its order.
    Raises: UserError when the file is absent or no split, or of other rows than those of `table`.
    """
    content = read_parquet(path)
    folds = content.filter(like="fold_")
    folds.attrs = dict(content.attrs)
    if folds.empty or not folds.isin(SUBSETS).all(axis=None):
        fact = f"{path} has no folds" if folds.empty else f"{path} has other values"
        raise UserError(f"a split must have folds of {', '.join(SUBSETS)}", fact, _REMEDY)
    if table is not None:
        row = table.column_of(Tag.ROW)
        keys = content[row].astype("str").tolist() if row in content else None
        if keys != table.frame[row].astype("str").tolist():
            raise UserError("a split must have the rows of the table", f"{path} has other rows", _REMEDY)
    return folds
