"""Select the rows that a model learns from: measured rows of a target, rows of a task, validation rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import labels
from perfcast.schema.table import Column, Role, Tag
from perfcast.utils.errors import UserError

Model = TypeVar("Model")

POOLED = "\x1e"
"""Name of the model of all rows, for a task that training did not have; a control character is no task's name."""

SMALL_TABLE = 50
"""Below this number of rows, random samples of rows cost more accuracy than they gain."""


def joined_labels(frame: pd.DataFrame, columns: Iterable[Column]) -> np.ndarray:
    """Return one string per row that is equal where all `columns` are equal; "" without columns.

    Shapes: (n,) object. A row with a missing value in any of the columns gets None: unknown values are not equal.
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
    tasks = joined_labels(frame, tagged)
    return np.where(pd.isna(tasks), "", tasks)


def measured_rows(log_y: np.ndarray, targets: Sequence[str]) -> list[np.ndarray]:
    """Return for every target which rows have a measured value.

    Shapes: log_y (n, targets) -> per target (n,) bool.
    Raises: UserError when a target was never measured in the training rows.
    """
    masks = [~np.isnan(log_y[:, index]) for index in range(len(targets))]
    for name, mask in zip(targets, masks, strict=True):
        if not mask.any():
            raise UserError(
                "every target must be measured in some training row", f"{name!r} is not", "leave this target out"
            )
    return masks


def partly_measured(tasks: np.ndarray, log_y: np.ndarray, targets: Sequence[str]) -> dict[str, list[str]]:
    """Return the measured targets of every task that has some of the targets and not all.

    Rows whose task is missing, "", belong to no task. Shapes: tasks (n,) object, log_y (n, targets).
    """
    if len(targets) == 1:
        return {}
    is_measured = ~np.isnan(log_y)
    partial = {}
    for task in np.unique(tasks.astype(str)):
        has = is_measured[tasks == task].any(axis=0)
        if task and has.any() and not has.all():
            partial[str(task)] = [name for name, measured in zip(targets, has, strict=True) if measured]
    return partial


def groups_of(tasks: np.ndarray, rows: np.ndarray, pooled: bool = True) -> dict[str, np.ndarray]:
    """Return which of `rows` each task has, and under POOLED all of them. Shapes: (n,) -> (n,) bool each."""
    groups = {str(task): rows & (tasks == task) for task in np.unique(tasks[rows].astype(str))}
    return {**groups, POOLED: rows} if pooled else groups


def fitted_by_group(groups: Mapping[str, np.ndarray], fit: Callable[[np.ndarray], Model]) -> dict[str, Model]:
    """Fit a model to the rows of each group; where all rows are of one task, its model is also that of all rows.

    Shapes: groups as `groups_of` gives them.
    """
    models = {name: fit(rows) for name, rows in groups.items() if name != POOLED}
    if POOLED in groups:
        models[POOLED] = next(iter(models.values())) if len(models) == 1 else fit(groups[POOLED])
    return models


def task_medians(tasks: np.ndarray, log_y: np.ndarray, targets: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the median of the logarithms by target and task, that of all rows under POOLED.

    Shapes: tasks (n,) object, log_y (n, targets).
    """
    medians = {}
    for logs, target, rows in zip(log_y.T, targets, measured_rows(log_y, targets), strict=True):

        def median(mask: np.ndarray, logs: np.ndarray = logs) -> float:
            return float(np.median(logs[mask]))

        medians[str(target)] = fitted_by_group(groups_of(tasks, rows), median)
    return medians


def draw_rows(tasks: np.ndarray, limit: int) -> np.ndarray:
    """Return the positions of at most `limit` rows of each task, in order. Shapes: tasks (n,) object -> (m,) int."""
    rng = np.random.default_rng(0)
    sampled = np.ones(len(tasks), dtype=bool)
    for rows in groups_of(tasks, sampled.copy(), pooled=False).values():
        places = np.flatnonzero(rows)
        if len(places) > limit:
            sampled[places] = False
            sampled[rng.choice(places, limit, replace=False)] = True
    return np.flatnonzero(sampled)


def choice_split(rows: np.ndarray, validation: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Split `rows` into those to fit on and those to choose on; None where either would be empty.

    Shapes: all (n,) bool.
    """
    fitting = rows & ~validation
    choosing = rows & validation
    return (fitting, choosing) if fitting.any() and choosing.any() else None


def task_groups(tasks: np.ndarray, rows: np.ndarray, min_samples: int) -> dict[str, np.ndarray]:
    """Divide `rows` among models: one per task of at least `min_samples` rows, and a shared one where others exist.

    A model of one task spends no splits on the task. The shared model, named "shared", learns from all rows, so that
    small tasks benefit from large ones.
    Shapes: tasks (n,) object, rows (n,) bool -> per model (n,) bool.
    """
    names, counts = np.unique(tasks[rows].astype(str), return_counts=True)
    large = [str(name) for name, count in zip(names, counts, strict=True) if count >= min_samples]
    groups = {f"task {name}": rows & (tasks == name) for name in large}
    if len(large) < len(names):
        groups["shared"] = rows
    return groups


def select_models(task: str, models: Sequence[str]) -> list[int]:
    """Return the models of a task: that of the task, else the shared one, else all, to be averaged in logs."""
    by_name = {name: [index] for index, name in enumerate(models)}
    return by_name.get(f"task {task}") or by_name.get("shared") or list(range(len(models)))
