"""The measured machines that are nearest to one that is asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from perfcast.intervals import Calibrated, gower
from perfcast.schema import Table, Tag

_FILE = "neighbours.npy"


class Neighbourhood:
    """Finds the nearest measured results of a task.

    Near is what forecasts rest on: the distance is the sum over groups of columns of Gower's distance times what the
    calibration found it to add to the typical error, so its unit is natural logarithms of the score. 0.05 says: what
    differs is worth an error of about 5 % more.
    Shapes: `encoded` (measured rows, encoded columns), float32, the groups of `Support` one after another.
    """

    def __init__(self, measured: Table, encoded: np.ndarray, calibrated: Calibrated) -> None:
        self.encoded, self.calibrated = encoded, calibrated
        self.tasks = measured.frame[measured.column_of(Tag.TASK)].astype(str).to_numpy()
        self._rows: dict[str, np.ndarray] = {}
        self._distinct: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def nearest(self, X: pd.DataFrame, tasks: pd.Series, count: int) -> list[list[tuple[int, float]]]:
        """Return for every row the numbers of the nearest measured rows of its task and their distances, nearest first.

        Of rows that are alike in everything encoded, the newest (last) comes first. X has the features of training.
        """
        asked = self.calibrated.support.encode(X)
        known: dict[tuple[str, bytes], np.ndarray] = {}
        found = []
        for row, task in zip(asked, tasks.astype(str), strict=True):
            rows = self._rows_of(task)
            far = self._distances(row, rows, known)
            # ties are told apart by the newest: all that are as near as the last one shown are sorted
            last = np.partition(far, count - 1)[count - 1] if len(far) > count else np.inf
            near = np.flatnonzero(far <= last)
            order = near[np.lexsort((-rows[near], far[near]))[:count]]
            found.append([(int(rows[place]), float(far[place])) for place in order])
        return found

    def _rows_of(self, task: str) -> np.ndarray:
        if task not in self._rows:
            self._rows[task] = np.flatnonzero(self.tasks == task)
        return self._rows[task]

    def _distances(self, row: np.ndarray, rows: np.ndarray, known: dict[tuple[str, bytes], np.ndarray]) -> np.ndarray:
        """Return distances to some measured rows; `known` keeps those to the distinct values of a group, by values."""
        weights = self.calibrated.calibration.weights
        far = np.zeros(len(rows))
        for group, part, numeric in self.calibrated.support.parts():
            distinct, numbers = self._distinct_of(group, part)
            key = (group, row[part].tobytes())
            if key not in known:
                known[key] = gower(row[part], distinct, numeric)
            far += weights.get(group, 0.0) * known[key][numbers[rows]]
        return far

    def _distinct_of(self, group: str, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values of a group, (m, columns), and the number of every row's, (rows,)."""
        if group not in self._distinct:
            own = np.ascontiguousarray(self.encoded[:, part])
            if not own.size:
                self._distinct[group] = own[:1], np.zeros(len(own), dtype=int)
            else:
                # compared as bytes: missing values are alike then
                _, first, numbers = np.unique(
                    own.view(f"V{own.itemsize * own.shape[1]}").ravel(), return_index=True, return_inverse=True
                )
                self._distinct[group] = own[first], numbers
        return self._distinct[group]

    def save(self, folder: Path) -> None:
        """Write the encoded rows."""
        np.save(folder / _FILE, self.encoded, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, measured: Table, calibrated: Calibrated) -> Self:
        """Read what `save` wrote; the rows stay on disk until they are asked for."""
        return cls(measured, np.load(folder / _FILE, mmap_mode="r", allow_pickle=False), calibrated)
