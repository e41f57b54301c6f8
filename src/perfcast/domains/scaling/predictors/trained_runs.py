"""Training runs as scaling laws read them: size, length, kind of the result, and the groups that share a law."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.domains.scaling.datasets.scaling_columns import FLOP_PER_PARAM_TOKEN
from perfcast.features.encoding.columns import numbers
from perfcast.predictors.task_rows import joined_labels, task_labels
from perfcast.schema.table import TASK_KIND, Column, Role, Tag, select

QUANTITIES = ("params", "tokens")
"""Columns of the quantities of a law; a table that lacks one has runs of one size, or of one length."""
CHANCE = "chance"
"""Share of correct answers of a random choice; optional."""
LOSS_TASK = "loss_task"
"""Task whose loss precedes an accuracy; optional."""
ALL = "\x1e"
"""Name of the law of all tasks, or with a kind after it of all tasks of the kind."""

_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class TrainedRuns:
    """Columns of the rows as arrays.

    Shapes: `logs` (n, 2), natural logarithms of parameters and tokens; all others (n,). Texts are "" where missing, and
    `chance` is 0.
    """

    logs: np.ndarray
    tasks: np.ndarray
    identities: np.ndarray
    kinds: np.ndarray
    loss_tasks: np.ndarray
    runs: np.ndarray
    chance: np.ndarray

    @property
    def log_compute(self) -> np.ndarray:
        """Return the natural logarithm of the operations of training, (n,)."""
        return log_compute(self.logs)

    def groups(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the rows of each law: of a task and training set, of a task, of a kind, and all of them.

        Shapes: rows (n,) bool -> (n,) bool each.
        """
        groups: dict[str, np.ndarray] = {ALL: rows}
        for kind in np.unique(self.kinds[rows].astype(str)):
            groups[ALL + kind] = rows & (self.kinds == kind)
        for task in np.unique(self.tasks[rows].astype(str)):
            of_task = rows & (self.tasks == task)
            groups[group_name(task)] = of_task
            identities = np.unique(self.identities[of_task].astype(str))
            if len(identities) > 1:
                for name in identities:
                    groups[group_name(task, name)] = of_task & (self.identities == name)
        return groups

    def names(self) -> list[tuple[tuple[str, str, str], np.ndarray]]:
        """Return the positions of the rows of every task, identity and kind."""
        texts = [values.astype(str) for values in (self.tasks, self.identities, self.kinds)]
        codes, groups = pd.factorize(pd.MultiIndex.from_arrays(texts))
        names = []
        for code, (task, identity, kind) in enumerate(groups):
            rows = np.flatnonzero(codes == code)
            names.append(((str(task), str(identity), str(kind)), rows))
        return names


def log_compute(logs: np.ndarray) -> np.ndarray:
    """Return the natural logarithm of the operations of training. Shapes: (n, 2) -> (n,)."""
    return np.asarray(np.log(FLOP_PER_PARAM_TOKEN) + logs.sum(axis=1))


def group_name(task: str, identity: str = "") -> str:
    """Return the name of the law of a task, or of a task and an identity."""
    return f"{task}{_SEPARATOR}{identity}" if identity else task


def candidates_of(task: str, identity: str, kind: str) -> list[str]:
    """Return the names of the laws that may serve a row, the most special first."""
    return [
        group_name(task, identity),
        group_name(task),
        ALL + kind,
        ALL,
    ]


def known_medians(X: pd.DataFrame, columns: Iterable[Column]) -> list[float]:
    """Return the medians of the positive parameters and tokens, 1 where there is none."""
    by_name = _readable(columns)
    medians = []
    for name in QUANTITIES:
        values = _numbers(X, by_name, name)
        positive = values[values > 0]
        medians.append(float(np.median(positive)) if len(positive) else 1.0)
    return medians


def read_runs(X: pd.DataFrame, columns: Iterable[Column], medians: Sequence[float]) -> TrainedRuns:
    """Read the rows of a table; a missing quantity is its median in training."""
    by_name = _readable(columns)
    declared = list(by_name.values())
    logs = np.empty((len(X), len(QUANTITIES)))
    for position, (name, median) in enumerate(zip(QUANTITIES, medians, strict=True)):
        values = _numbers(X, by_name, name)
        logs[:, position] = np.log(np.where(values > 0, values, median))
    chance = _numbers(X, by_name, CHANCE)
    return TrainedRuns(
        logs=logs,
        tasks=task_labels(X, declared),
        identities=_labels(X, select(declared, tag=Tag.IDENTITY)),
        kinds=_texts(X, by_name, TASK_KIND),
        loss_tasks=_labels(X, [by_name[LOSS_TASK]] if LOSS_TASK in by_name else []),
        runs=_labels(X, select(declared, tag=Tag.BLOCK)),
        chance=np.where(chance > 0, np.minimum(chance, 0.99), 0.0),
    )


def _readable(columns: Iterable[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns if column.role in (Role.FEATURE, Role.KEY)}


def _numbers(X: pd.DataFrame, by_name: dict[str, Column], name: str) -> np.ndarray:
    """Return the numbers of a column, NaN where the table lacks it, (n,)."""
    return numbers(X, by_name[name]) if name in by_name else np.full(len(X), np.nan)


def _labels(X: pd.DataFrame, columns: list[Column]) -> np.ndarray:
    """Return one string per row for the values of some columns, as tasks are named; "" where one is missing."""
    joined = joined_labels(X, columns)
    return np.where(pd.isna(joined), "", joined).astype(object)


def _texts(X: pd.DataFrame, by_name: dict[str, Column], name: str) -> np.ndarray:
    columns = [by_name[name]] if name in by_name else []
    texts = _labels(X, columns).astype(str)
    return np.char.rstrip(texts, _SEPARATOR).astype(object)
