"""Which rows a model learns from: measured rows of a target, rows of a task, rows set aside for choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from perfcast.encoding.dense import labels
from perfcast.errors import UserError
from perfcast.schema import Column, Role, Tag

SMALL_TABLE = 50
"""Below this number of rows, leaving rows out at random costs more than it brings."""


def joined_labels(frame: pd.DataFrame, columns: Iterable[Column]) -> np.ndarray:
    """Return one string per row that is equal where all `columns` are equal; "" without columns.

    Shapes: (n,) object. A row with a missing value in any of the columns gets None: unknown is not "the same".
    """
    joined = np.full(len(frame), "", dtype=object)
    missing = np.zeros(len(frame), dtype=bool)
    for column in columns:
        values = labels(frame, column)
        missing |= pd.isna(values)
        joined = joined + np.where(pd.isna(values), "", values) + "\x1f"
    joined[missing] = None
    return joined


def task_labels(frame: pd.DataFrame, columns: Iterable[Column]) -> np.ndarray:
    """Return the task of every row as a string, "" where it is missing or no column is tagged TASK."""
    tagged = [column for column in columns if Tag.TASK in column.tags and column.role is not Role.TARGET]
    found = joined_labels(frame, tagged)
    return np.where(pd.isna(found), "", found)


def measured_rows(log_y: np.ndarray, targets: Sequence[str]) -> list[np.ndarray]:
    """Return for every target which rows have a measured value.

    Shapes: log_y (n, targets) -> per target (n,) bool.
    Raises: UserError when a target was never measured in the training rows.
    """
    masks = [~np.isnan(log_y[:, index]) for index in range(len(targets))]
    for name, mask in zip(targets, masks, strict=True):
        if not mask.any():
            raise UserError(
                "every target must be measured in some training row", f"{name!r} is not", "leave that target out"
            )
    return masks


def choice_split(rows: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Split `rows` into those to fit on and those to choose by; None where either part would be empty.

    Shapes: all (n,) bool.
    """
    fitting, choosing = rows & ~valid, rows & valid
    return (fitting, choosing) if fitting.any() and choosing.any() else None
