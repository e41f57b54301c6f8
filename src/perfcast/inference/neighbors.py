"""Index of the measured results that are nearest to a described machine."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.uncertainty.conformal import UncertaintyModel
from perfcast.uncertainty.in_domain import gower_distances

_FILE = "neighbors.npy"


class NeighborIndex:
    """Index that finds the nearest measured results of a task.

    The distance is the sum over groups of columns of Gower's distance, weighted by what the calibration found the group
    to add to the expected error. Units: natural logarithms of the score; 0.05 is an expected error of 5 % more.
    Shapes: `encoded` (measured rows, encoded columns), float32, the groups of `Support` one after another.
    """

    def __init__(self, measured: Table, encoded: np.ndarray, calibrated: UncertaintyModel) -> None:
        self.encoded, self.calibrated = encoded, calibrated
        self.tasks = measured.frame[measured.column_of(Tag.TASK)].astype(str).to_numpy()
        self._rows: dict[str, np.ndarray] = {}
        self._distinct: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def find_nearest(self, X: pd.DataFrame, tasks: pd.Series, count: int) -> list[list[tuple[int, float]]]:
        """Return for every row the numbers of the nearest measured rows of its task and their distances, nearest first.

        Of rows that are alike in everything encoded, the newest (last) comes first. X has the features of training.
        """
        encoded = self.calibrated.in_domain.encode(X)
        known: dict[tuple[str, bytes], np.ndarray] = {}
        nearest = []
        for row, task in zip(encoded, tasks.astype(str), strict=True):
            rows = self._rows_of(task)
            far = self._distances(row, rows, known)
            # the newest wins a tie, so all rows as near as the last one shown are sorted
            last = np.partition(far, count - 1)[count - 1] if len(far) > count else np.inf
            near = np.flatnonzero(far <= last)
            order = near[np.lexsort((-rows[near], far[near]))[:count]]
            nearest.append([(int(rows[place]), float(far[place])) for place in order])
        return nearest

    def _rows_of(self, task: str) -> np.ndarray:
        if task not in self._rows:
            self._rows[task] = np.flatnonzero(self.tasks == task)
        return self._rows[task]

    def _distances(self, row: np.ndarray, rows: np.ndarray, known: dict[tuple[str, bytes], np.ndarray]) -> np.ndarray:
        """Return distances to some measured rows; `known` caches those to the distinct values of a group, by values."""
        weights = self.calibrated.calibration.weights
        far = np.zeros(len(rows))
        for group, part, numeric in self.calibrated.in_domain.parts():
            distinct, numbers = self._distinct_of(group, part)
            key = (group, row[part].tobytes())
            if key not in known:
                known[key] = gower_distances(row[part], distinct, numeric)
            far += weights.get(group, 0.0) * known[key][numbers[rows]]
        return far

    def _distinct_of(self, group: str, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values of a group, (m, columns), and the number of every row's, (rows,)."""
        if group not in self._distinct:
            columns = np.ascontiguousarray(self.encoded[:, part])
            if not columns.size:
                self._distinct[group] = columns[:1], np.zeros(len(columns), dtype=int)
            else:
                # compared as bytes: missing values are alike then
                _, first, numbers = np.unique(
                    columns.view(f"V{columns.itemsize * columns.shape[1]}").ravel(),
                    return_index=True,
                    return_inverse=True,
                )
                self._distinct[group] = columns[first], numbers
        return self._distinct[group]

    def save(self, folder: Path) -> None:
        """Write the encoded rows."""
        np.save(folder / _FILE, self.encoded, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, measured: Table, calibrated: UncertaintyModel) -> Self:
        """Read what `save` wrote; the rows stay on disk until they are used."""
        return cls(measured, np.load(folder / _FILE, mmap_mode="r", allow_pickle=False), calibrated)
