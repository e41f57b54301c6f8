"""The memory baseline: what the same machine scored before, else what the most similar machine did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from perfcast.encoding.dense import LinearEncoder, feature_columns
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import joined_labels, measured_rows, task_labels
from perfcast.predictors.base import Predictor
from perfcast.schema import Column, Role, Tag

_ROWS_AT_ONCE = 1024


class LookupPredictor(Predictor):
    """Median of the training rows of the same task and identity, else of the nearest such machine of the task.

    A machine is all training rows equal on the TASK and IDENTITY columns (on every feature where a data set tags no
    IDENTITY). Near is the Euclidean distance of standardised features (logarithms where positive) to the machine's
    mean, with each categorical column counted as the outputs of `LinearEncoder`. A task never seen is looked up among
    the machines of all tasks.
    """

    encoder_: LinearEncoder
    keys_: list[str]
    tasks_: np.ndarray
    centres_: np.ndarray
    medians_: np.ndarray

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        keys, tasks = self._keys(X), task_labels(X, self.columns_)
        self.encoder_ = LinearEncoder().fit(X, feature_columns(self.columns_))
        # A row whose identity is not known is a machine of its own, found again by distance only.
        named = np.where(pd.isna(keys), [f"\x1e{position}" for position in range(len(keys))], keys)
        self.keys_, first, machine = _unique(named)
        self.tasks_ = tasks[first]
        self.centres_ = pd.DataFrame(self.encoder_.transform(X)).groupby(machine).mean().to_numpy()
        self.medians_ = pd.DataFrame(log_y).groupby(machine).median().to_numpy()

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        position = {key: index for index, key in enumerate(self.keys_)}
        machine = np.array([position.get(key, -1) for key in self._keys(X)])
        logs = np.where((machine >= 0)[:, None], self.medians_[machine], np.nan)
        questions = list(self._questions(task_labels(X, self.columns_)))
        is_open = np.zeros(len(X), dtype=bool)
        for target, _, rows in questions:
            is_open[rows] |= np.isnan(logs[rows, target])
        encoded = np.full((len(X), self.centres_.shape[1]), np.nan)
        if is_open.any():
            encoded[is_open] = self.encoder_.transform(X[is_open])
        # the targets of one task mostly have the same machines: whoever is nearest for one is for the others
        found: dict[tuple[bytes, bytes], np.ndarray] = {}
        for target, task, rows in questions:
            unknown = rows[np.isnan(logs[rows, target])]
            measured = ~np.isnan(self.medians_[:, target])
            among = np.flatnonzero(measured & (self.tasks_ == task))
            among = among if len(among) else np.flatnonzero(measured)
            key = (unknown.tobytes(), among.tobytes())
            if key not in found:
                found[key] = among[self._nearest(encoded[unknown], among)]
            logs[unknown, target] = self.medians_[found[key], target]
        return logs

    def _nearest(self, encoded: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Return the position in `among` of the machine nearest to each row. Shapes: (n, columns) -> (n,) int."""
        parts = [
            cdist(encoded[start : start + _ROWS_AT_ONCE], self.centres_[among], "sqeuclidean").argmin(axis=1)
            for start in range(0, len(encoded), _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=int)

    def _keys(self, X: pd.DataFrame) -> np.ndarray:
        usable = [column for column in self.columns_ if column.role is not Role.TARGET]
        identity: list[Column] = [column for column in usable if Tag.IDENTITY in column.tags]
        identity = identity or list(feature_columns(self.columns_))
        return joined_labels(X, [*[column for column in usable if Tag.TASK in column.tags], *identity])

    def _save(self, folder: Path) -> None:
        state = {"encoder": self.encoder_.to_state(), "keys": self.keys_, "tasks": self.tasks_.tolist()}
        write_json(folder / "machines.json", state)
        np.save(folder / "centres.npy", self.centres_, allow_pickle=False)
        np.save(folder / "medians.npy", self.medians_, allow_pickle=False)

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "machines.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        self.keys_, self.tasks_ = state["keys"], np.array(state["tasks"], dtype=object)
        self.centres_ = np.load(folder / "centres.npy", allow_pickle=False)
        self.medians_ = np.load(folder / "medians.npy", allow_pickle=False)


def _unique(keys: np.ndarray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the distinct keys sorted, the first row of each, and the key number of every row."""
    distinct, first, inverse = np.unique(keys.astype(str), return_index=True, return_inverse=True)
    return [str(key) for key in distinct], first, inverse
