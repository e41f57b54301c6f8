"""Idle time tells whether a victim lost throughput at all: `idle_time`."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.interference.features.resource_shares import IDLE, SCHEDSTAT, UNSTALLED_RUN
from perfcast.domains.interference.predictors.share_laws import MIN_SHARE, ShareLawPredictor
from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors.task_rows import POOLED, task_labels

THRESHOLDS = (-1.0, 0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 2.0)
"""Idle shares above which a victim may count as one that keeps up: from every victim to none."""
MIN_ROWS = 30
"""Training rows of a task below which it has the threshold of all tasks."""

Rule = tuple[float, str]
"""Threshold of the idle share, and the column of the share of a victim below it."""


@dataclass(kw_only=True, eq=False, repr=False)
class IdleTimePredictor(ShareLawPredictor):
    """share of alone = 1 where the victim is idle for more than a threshold, else the time it ran of that it wanted.

    A workload that still rests, because its requests come at a rate of their own, has done all its work, however long
    each request waited. One that never rests lost the time in which it waited. Two numbers per task are fitted by the
    least absolute error of the share: the threshold, and which of two columns tells the waiting.
    Source: the utilization law of operational analysis, throughput = utilization / demand per operation (Denning and
    Buzen, 1978, ACM Computing Surveys 10(3)).
    """

    shares: ClassVar[tuple[str, ...]] = (IDLE, UNSTALLED_RUN, SCHEDSTAT)

    rules_: dict[str, dict[str, Rule]] = field(init=False)
    """By target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        super()._fit(X, log_y, validation)
        self.rules_ = {}
        values = self._read(X)
        busy = [name for name in (UNSTALLED_RUN, SCHEDSTAT) if name in values]
        if IDLE not in values or not busy:
            return
        tasks = task_labels(X, self.columns_)
        for index, target in enumerate(self.targets_):
            known = ~np.isnan(log_y[:, index])
            groups = {POOLED: known, **{task: known & (tasks == task) for task in sorted(set(tasks.tolist()))}}
            y = np.exp(log_y[:, index])
            self.rules_[target] = {
                task: _best_rule(values, busy, rows, y)
                for task, rows in groups.items()
                if rows.sum() >= MIN_ROWS or task == POOLED
            }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        if not self.rules_:
            return super()._predict(X)
        values = self._read(X)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(task_labels(X, self.columns_)):
            rules = self.rules_[self.targets_[index]]
            threshold, name = rules.get(task, rules[POOLED])
            share = _apply(values[IDLE][rows], values[name][rows], threshold)
            logs[rows, index] = np.log(np.clip(share, MIN_SHARE, None))
        return logs

    def _read(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return the columns of the rule that the table has, by name."""
        columns = self._share_columns()
        matrix = number_matrix(X, columns)
        return {column.name: matrix[:, place] for place, column in enumerate(columns)}

    def _load(self, folder: Path) -> None:
        super()._load(folder)
        self.rules_ = {
            target: {task: (float(threshold), str(name)) for task, (threshold, name) in by_task.items()}
            for target, by_task in self.rules_.items()
        }


def _best_rule(values: dict[str, np.ndarray], busy: list[str], rows: np.ndarray, y: np.ndarray) -> Rule:
    """Return the rule of least absolute error on some rows, the first one among equals."""
    rules = list(product(THRESHOLDS, busy))
    errors = [
        np.abs(_apply(values[IDLE][rows], values[name][rows], threshold) - y[rows]).mean() if rows.any() else 0.0
        for threshold, name in rules
    ]
    return rules[int(np.argmin(errors))]


def _apply(idle: np.ndarray, share: np.ndarray, threshold: float) -> np.ndarray:
    """Return 1 where the victim rests more than the threshold, else the share; 1 where a value is missing."""
    return np.where(idle > threshold, 1.0, np.nan_to_num(share, nan=1.0))
