"""Standardisation of log targets per task, so that one model serves every task of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

_ALL = ""


@dataclass(frozen=True)
class TargetScale:
    """Centre and spread of the log targets of each task.

    A task that was not fitted, and a target that a task never measured, take the figures of all rows.
    """

    centres: dict[str, list[float]]
    spreads: dict[str, list[float]]

    @classmethod
    def fit(cls, tasks: np.ndarray, logs: np.ndarray) -> Self:
        """Measure centre and spread. Shapes: tasks (n,) text, logs (n, targets), NaN where not measured."""
        centres, spreads = {_ALL: [0.0] * logs.shape[1]}, {_ALL: [1.0] * logs.shape[1]}
        for task in [_ALL, *sorted(set(tasks.tolist()) - {_ALL})]:
            chosen = logs if task == _ALL else logs[tasks == task]
            pairs = [_centre_spread(column, centres[_ALL][i], spreads[_ALL][i]) for i, column in enumerate(chosen.T)]
            centres[task] = [centre for centre, _ in pairs]
            spreads[task] = [spread for _, spread in pairs]
        return cls(centres, spreads)

    def standardise(self, tasks: np.ndarray, logs: np.ndarray) -> np.ndarray:
        """Return logs in units of their task's spread around its centre."""
        values: np.ndarray = (logs - self._rows(self.centres, tasks)) / self._rows(self.spreads, tasks)
        return values

    def restore(self, tasks: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Undo `standardise`."""
        logs: np.ndarray = values * self._rows(self.spreads, tasks) + self._rows(self.centres, tasks)
        return logs

    def state(self) -> dict[str, Any]:
        """Return the figures as values that JSON can hold."""
        return {"centres": self.centres, "spreads": self.spreads}

    @staticmethod
    def _rows(figures: dict[str, list[float]], tasks: np.ndarray) -> np.ndarray:
        return np.array([figures.get(task, figures[_ALL]) for task in tasks.tolist()])


def _centre_spread(column: np.ndarray, centre: float, spread: float) -> tuple[float, float]:
    seen = column[~np.isnan(column)]
    if len(seen) == 0:
        return centre, spread
    deviation = float(seen.std())
    return float(seen.mean()), deviation if deviation > 1e-9 else 1.0
