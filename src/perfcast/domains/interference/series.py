"""Test rows that follow each other in time, for a plot of predictions over it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.utils.errors import UserError

SERIES_COLUMNS = [
    *("split", "task", "line", "axis", "quantity", "position"),
    *("predictor", "measured", "predicted", "low", "high"),
]
"""`axis` names the position, `quantity` the values; `low` and `high` bound the interval."""


def tabulate_series(
    points: pd.DataFrame, table: Table, *, line: Sequence[str], position: str, complement: str = ""
) -> pd.DataFrame:
    """Return one line of test rows per split and task, as every predictor predicts it.

    Rows that agree on the columns `line` are a line, in the order of the column `position`, the time. The line whose
    measured values differ most (standard deviation) is chosen, so predictions have no part in the choice.
    `complement` names 1 - target, where that is what a reader wants to see: values are those then.
    Shapes: `points` as in `Evaluation` -> SERIES_COLUMNS.
    Raises: UserError when the table lacks a column.
    """
    if points.empty:
        return pd.DataFrame(columns=SERIES_COLUMNS)
    known = table.frame.set_index(table.column_of(Tag.ROW))
    if missing := [name for name in [*line, position] if name not in known]:
        raise UserError(
            "columns of `series` must be in the table",
            f"{missing[0]!r} is not",
            "edit `series` in the conf of the dataset",
        )
    rows = known.loc[points["row"]].reset_index(drop=True)
    frame = points.reset_index(drop=True).assign(
        line=rows[list(line)].astype(str).agg(", ".join, axis=1),
        position=rows[position].astype(float),
        axis=position,
    )
    chosen = [_largest_spread(part) for _, part in frame.groupby(["split", "task"], sort=False)]
    return _bounded(pd.concat(chosen, ignore_index=True), complement)[SERIES_COLUMNS]


def _largest_spread(part: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the line with the largest deviation of measured values, the first by name among equals."""
    once = part.drop_duplicates("row")
    spread = once.groupby("line")["measured"].std().fillna(0.0).sort_index()
    return part[part["line"] == spread.idxmax()].sort_values(["predictor", "position"], kind="stable")


def _bounded(frame: pd.DataFrame, complement: str) -> pd.DataFrame:
    """Add bounds of the interval, and take the complement where it has a name."""
    half = frame["half_width"].astype(float)
    frame = frame.assign(quantity=complement or frame["target"])
    frame = frame.assign(low=frame["predicted"] * np.exp(-half), high=frame["predicted"] * np.exp(half))
    if complement:
        names = ["measured", "predicted", "low", "high"]
        frame[names] = 1 - frame[["measured", "predicted", "high", "low"]].to_numpy()
    return frame
