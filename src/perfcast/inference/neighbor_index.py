"""Nearest measured results of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.uncertainty.conformal import UncertaintyModel
from perfcast.uncertainty.in_domain import gower_distances

_NEIGHBORS = "neighbors.npy"


class NeighborIndex:
    """Index that finds the nearest measured results of a task.

    The distance is the sum over groups of columns of Gower's distance, weighted by what the calibration found the group
    to add to the expected error, at least by the error at distance 0, and that error once more for another entity.
    Units: natural logarithms of the score; 0.05 is an expected error of 5 % more.
    Shapes: `encoded` (measured rows, encoded columns), float32, the groups of `InDomainModel` one after another.
    """

    def __init__(self, measured: Table, encoded: np.ndarray, calibrated: UncertaintyModel) -> None:
        self.encoded, self.calibrated = encoded, calibrated
        self.tasks = measured.frame[measured.column_of(Tag.TASK)].astype(str).to_numpy()
        self._entity = measured.column_of(Tag.ENTITY)
        self._entities = measured.frame[self._entity].astype(str).to_numpy()
        self._rows: dict[str, np.ndarray] = {}
        self._distinct: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def find_nearest(
        self, X: pd.DataFrame, tasks: pd.Series, count: int, ignored: pd.DataFrame | None = None
    ) -> list[list[tuple[int, float]]]:
        """Return for every row the numbers of the nearest measured rows of its task and their distances, nearest first.

        Of rows that are alike in everything encoded, the newest (last) comes first. X has the features of training;
        `ignored` marks its cells without weight, see `InDomainModel.distances`.
        """
        in_domain = self.calibrated.in_domain
        encoded = in_domain.mask(in_domain.encode(X), ignored).astype(np.float32)
        known: dict[tuple[str, bytes], np.ndarray] = {}
        nearest = []
        entities = X[self._entity].astype(str)
        for row, task, entity in zip(encoded, tasks.astype(str), entities, strict=True):
            rows = self._rows_of(task)
            far = self._distances(row, rows, known)
            far += self.calibrated.calibration.base * (self._entities[rows] != entity)
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
        for group, span, numeric in self.calibrated.in_domain.parts():
            distinct, numbers = self._distinct_of(group, span)
            key = (group, row[span].tobytes())
            if key not in known:
                known[key] = gower_distances(row[span], distinct, numeric)
            far += max(weights.get(group, 0.0), self.calibrated.calibration.base) * known[key][numbers[rows]]
        return far

    def _distinct_of(self, group: str, span: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values of a group, (m, columns), and the number of every row's, (rows,)."""
        if group not in self._distinct:
            columns = np.ascontiguousarray(self.encoded[:, span])
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
        np.save(folder / _NEIGHBORS, self.encoded, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, measured: Table, calibrated: UncertaintyModel) -> Self:
        """Read what `save` wrote; the rows stay on disk until they are used."""
        return cls(measured, np.load(folder / _NEIGHBORS, mmap_mode="r", allow_pickle=False), calibrated)
