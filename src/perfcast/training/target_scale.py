"""Standardization of log targets per task, so that one model serves every task of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

_ALL = ""


@dataclass(frozen=True)
class TargetScale:
    """Center and spread of the log targets of each task.

    A task that was not fitted, and a target that a task never measured, take the values of all rows.
    """

    centers: dict[str, list[float]]
    spreads: dict[str, list[float]]

    @classmethod
    def fit(cls, tasks: np.ndarray, logs: np.ndarray) -> Self:
        """Measure center and spread. Shapes: tasks (n,) text, logs (n, targets), NaN where not measured."""
        centers, spreads = {_ALL: [0.0] * logs.shape[1]}, {_ALL: [1.0] * logs.shape[1]}
        for task in [_ALL, *sorted(set(tasks.tolist()) - {_ALL})]:
            selected = logs if task == _ALL else logs[tasks == task]
            pairs = [_center_spread(column, centers[_ALL][i], spreads[_ALL][i]) for i, column in enumerate(selected.T)]
            centers[task] = [center for center, _ in pairs]
            spreads[task] = [spread for _, spread in pairs]
        return cls(centers, spreads)

    def standardize(self, tasks: np.ndarray, logs: np.ndarray) -> np.ndarray:
        """Return logs in units of their task's spread around its center."""
        scaled: np.ndarray = (logs - self._rows(self.centers, tasks)) / self._rows(self.spreads, tasks)
        return scaled

    def restore(self, tasks: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Undo `standardize`."""
        logs: np.ndarray = values * self._rows(self.spreads, tasks) + self._rows(self.centers, tasks)
        return logs

    def state(self) -> dict[str, Any]:
        """Return centers and spreads as values that JSON can hold."""
        return {"centers": self.centers, "spreads": self.spreads}

    @staticmethod
    def _rows(values: dict[str, list[float]], tasks: np.ndarray) -> np.ndarray:
        return np.array([values.get(task, values[_ALL]) for task in tasks.tolist()])


def _center_spread(column: np.ndarray, center: float, spread: float) -> tuple[float, float]:
    known = column[~np.isnan(column)]
    if len(known) == 0:
        return center, spread
    deviation = float(known.std())
    return float(known.mean()), deviation if deviation > 1e-9 else 1.0
