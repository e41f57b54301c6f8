"""Explanations of a fitted predictor: grouped permutation importance, and maps of an attention network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Role, Table, Tag
from perfcast.utils.io import atomic_path

MAX_ROWS = 1000
"""Most rows of an explanation: more only cost time."""


def group_importance(predictor: Predictor, table: Table, rows: np.ndarray, seed: int) -> pd.DataFrame:
    """Return the growth of the error when the columns of one group are shuffled together among rows of one task.

    A group is shuffled as a whole: its columns repeat one another, and shuffling a single one hides its importance.
    Shapes: `rows` (n,) bool; one line per group of features: group, mape, increase. Units: percent, percentage points.
    Source: Breiman, 2001, Machine Learning 45(1), for groups of columns.
    """
    generator = np.random.default_rng(seed)
    frame = table.frame.loc[_sample(rows, generator)]
    tasks = frame[table.column_of(Tag.TASK)].astype(str).to_numpy()
    measured = frame[list(predictor.targets_)].to_numpy(dtype=float)
    X = frame[predictor.input_names()]

    def error(inputs: pd.DataFrame) -> float:
        return float(np.nanmean(np.abs(predictor.predict(inputs).to_numpy() / measured - 1)) * 100)

    used = [column for column in predictor.columns_ if column.role is Role.FEATURE and Tag.TASK not in column.tags]
    before = error(X)
    lines = []
    for group in sorted({column.group for column in used}):
        names = [column.name for column in used if column.group == group]
        order = _within(tasks, generator)
        shuffled = X.assign(**{name: X[name].iloc[order].set_axis(X.index) for name in names})
        after = error(shuffled)
        lines.append({"group": group, "mape": after, "increase": after - before})
    return pd.DataFrame(lines, columns=["group", "mape", "increase"])


def write_explanation(predictor: Predictor, table: Table, rows: np.ndarray, seed: int, folder: Path) -> None:
    """Write importance.csv, and attention_<group>.csv and attention_between_groups.csv of a network that has maps."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = {"importance": group_importance(predictor, table, rows, seed).set_index("group")}
    attention = getattr(predictor, "attention", None)
    if attention is not None:
        maps = attention(table.frame.loc[_sample(rows, np.random.default_rng(seed)), predictor.input_names()])
        frames |= {f"attention_{group}": shares for group, shares in maps.intra.items()}
        frames["attention_between_groups"] = maps.inter
    for name, frame in frames.items():
        with atomic_path(folder / f"{name}.csv") as temporary:
            frame.round(6).to_csv(temporary, lineterminator="\n")


def _sample(rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Mark at most MAX_ROWS of the given rows, (n,) bool."""
    numbers = np.flatnonzero(rows)
    chosen = generator.choice(numbers, min(MAX_ROWS, len(numbers)), replace=False)
    marked = np.zeros(len(rows), dtype=bool)
    marked[chosen] = True
    return marked


def _within(tasks: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return an order of rows that shuffles the rows of each task, (n,) int."""
    order = np.arange(len(tasks))
    for task in np.unique(tasks):
        rows = np.flatnonzero(tasks == task)
        order[rows] = generator.permutation(rows)
    return order
