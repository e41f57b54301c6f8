"""Row masks of a fold: the rows that are learned, and those that are evaluated."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Role, Table, Tag

_MIN_PEERS = 5
"""Fewest measured peers for which a training label may be an outlier."""


def label_outliers(table: Table, rows: np.ndarray, threshold: float | None) -> np.ndarray:
    """Mark training rows whose score is implausible beside its peers: same TASK and IDENTITY, at least five of them.

    Shapes: `rows` and the result are boolean over the table's rows; marked rows are a subset of `rows`.
    `threshold` is the largest absolute natural logarithm of score over the peers' median; None marks nothing. Only the
    given rows are compared, so no test score takes part. Source: counts of the published results, where deviations
    beyond 0.3 are typing errors or crippled configurations, all on the low side.
    """
    marked = np.zeros(len(table.frame), dtype=bool)
    if threshold is None or not rows.any():
        return marked
    peers = table.select(tag=Tag.TASK) + table.select(tag=Tag.IDENTITY)
    frame = table.frame.loc[rows]
    for target in table.select(role=Role.TARGET):
        logs = np.log(frame[target])
        groups = logs.groupby([frame[name] for name in peers], dropna=False)
        far = (logs - groups.transform("median")).abs() > threshold
        marked[np.flatnonzero(rows)] |= (far & (groups.transform("count") >= _MIN_PEERS)).to_numpy()
    return marked


def measured_rows(table: Table) -> np.ndarray:
    """Mark the rows that have at least one score, (n,) bool."""
    return np.asarray(table.frame[table.select(role=Role.TARGET)].notna().any(axis=1), dtype=bool)


def training_rows(table: Table, subset: np.ndarray, label_outlier: float | None) -> np.ndarray:
    """Mark the rows of one fold that a predictor may learn from: measured, in training, label not an outlier."""
    rows = np.isin(subset, ["train", "validation"]) & measured_rows(table)
    return np.asarray(rows & ~label_outliers(table, rows, label_outlier), dtype=bool)


def evaluated_rows(table: Table) -> np.ndarray:
    """Mark the rows that count in the metrics, (n,) bool: all but those that an EXCLUDED column excludes."""
    rows = np.ones(len(table.frame), dtype=bool)
    for name in table.select(tag=Tag.EXCLUDED):
        rows &= (table.frame[name] != 1).to_numpy()
    return rows


def tested_rows(table: Table, subset: np.ndarray) -> np.ndarray:
    """Mark the test rows of one fold that count in the metrics."""
    return np.asarray((subset == "test") & evaluated_rows(table), dtype=bool)


def last_year(table: Table, rows: np.ndarray) -> np.ndarray | None:
    """Mark the last twelve months of the given rows, None where the dataset has no dates."""
    names = table.select(tag=Tag.TIME)
    if not names:
        return None
    when = table.frame.loc[rows, names[0]]
    return np.asarray(when > when.max() - pd.DateOffset(months=12), dtype=bool)
