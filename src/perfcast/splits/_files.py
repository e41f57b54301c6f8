"""Folds as a file: read with the table that they are of, so that no row gets another one's part."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from perfcast.errors import UserError
from perfcast.schema import Table, Tag
from perfcast.splits._audit import PARTS
from perfcast.table_files import read_parquet

_AGAIN = "run snakemake to make it again"


def read_folds(path: Path, table: Table | None = None) -> pd.DataFrame:
    """Read what `perfcast split` wrote: the columns fold_0, fold_1 and so on, with the file's attributes.

    Shapes: one row per row of `table`, in its order.
    Raises: UserError when the file is absent or no split, or of other rows than those of `table`.
    """
    found = read_parquet(path)
    folds = found.filter(like="fold_")
    folds.attrs = dict(found.attrs)
    if folds.empty or not folds.isin(PARTS).all(axis=None):
        fact = f"{path} has no folds" if folds.empty else f"{path} has others"
        raise UserError(f"a split must have folds of {', '.join(PARTS)}", fact, _AGAIN)
    if table is not None:
        row = table.column_of(Tag.ROW)
        own = found[row].astype("str").tolist() if row in found else None
        if own != table.frame[row].astype("str").tolist():
            raise UserError("a split must be of the rows of the table", f"{path} is of others", _AGAIN)
    return folds
