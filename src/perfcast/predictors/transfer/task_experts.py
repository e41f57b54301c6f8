"""Predictors of new tasks from a few rows: one linear expert per well-measured task, and a subclass's use of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, measured_rows, task_labels
from perfcast.predictors.transfer.task_items import ItemEncoder, at_most, item_columns, task_descriptions
from perfcast.schema.table import Column
from perfcast.utils.io import read_json, write_json

_FOLDS = 5
_PENALTIES = (0.1, 1.0, 10.0, 100.0)
_FLOOR = 0.1
"""A forecast is at least this share of its task's smallest training value: sums of weights may go below 0."""

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Known:
    """What a few rows of a task say, beside what the experts forecast for them.

    Shapes: values (n,) over their mean; experts (experts, n), each over its mean over the rows; groups name -> (n,
    outputs); alike (experts,), share of the task's own descriptions that each expert's task has too.
    """

    values: np.ndarray
    experts: np.ndarray
    groups: dict[str, np.ndarray]
    alike: np.ndarray


@dataclass(frozen=True)
class Weights:
    """A forecast as a sum: a constant, experts (each over its mean over the known rows), and outputs of groups."""

    constant: float
    experts: np.ndarray
    groups: dict[str, np.ndarray]


class TaskExpertsPredictor(Predictor):
    """A weighted sum of encoded item columns on targets, per task; a few rows of a new task suffice.

    An expert is a ridge regression on a task with more than `few_rows` rows (at most `expert_rows` of them, evenly
    spread), its penalty chosen by cross-validation: it answers for its task. A task of fewer rows gets the weights that
    `_weigh` makes of them and of the experts' forecasts. Targets are learned as they are, not in logarithms: the time
    of a network is about the sum of its parts' times. A task never seen gets the mean of all weights.
    """

    few_rows: int
    expert_rows: int

    items_: tuple[Column, ...]
    encoder_: ItemEncoder
    weights_: dict[str, dict[str, list[float]]]
    floors_: dict[str, dict[str, float]]

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        masks = measured_rows(log_y, self.targets_)
        tasks = task_labels(X, self.columns_).astype(str)
        kept = at_most(tasks, self.expert_rows)
        X, tasks, y = X.iloc[kept], tasks[kept], np.exp(log_y[kept])
        sizes = pd.Series(tasks).value_counts()
        rich = sizes[sizes > self.few_rows]
        self.items_ = item_columns(X, self.columns_)
        described = task_descriptions(X, self.columns_, self.items_)
        self.encoder_ = ItemEncoder(int(rich.min()) if len(rich) else 0).fit(X, self.items_)
        self.weights_, self.floors_ = {}, {}
        for index, (target, mask) in enumerate(zip(self.targets_, masks, strict=True)):
            own = mask[kept]
            rows = {str(task): np.flatnonzero(own & (tasks == task)) for task in np.unique(tasks[own])}
            experts = {task: r for task, r in rows.items() if len(r) > self.few_rows}
            found = {task: _expert(self._matrix(X.iloc[r]), y[r, index]) for task, r in experts.items()}
            for task, r in rows.items():
                if task not in experts:
                    among = {expert: found[expert] for expert in experts}
                    alike = _alike(described[task], [described[expert] for expert in experts])
                    found[task] = self._adapted(X.iloc[r], y[r, index], among, alike)
            found[POOLED] = np.mean(list(found.values()), axis=0)
            self.weights_[target] = {task: one.tolist() for task, one in found.items()}
            floors = {task: _FLOOR * float(y[r, index].min()) for task, r in rows.items()}
            self.floors_[target] = {**floors, POOLED: min(floors.values())}

    def _adapted(
        self, X: pd.DataFrame, y: np.ndarray, experts: Mapping[str, np.ndarray], alike: np.ndarray
    ) -> np.ndarray:
        """Return the weights of a task with few rows, (1 + outputs,), the constant first.

        Shapes: y (n,), experts (1 + outputs,) each, alike (experts,).
        """
        matrix, scale = self._matrix(X), float(y.mean())
        stacked = np.array(list(experts.values())).reshape(len(experts), 1 + matrix.shape[1])
        forecasts = stacked[:, :1] + stacked[:, 1:] @ matrix.T
        means = forecasts.mean(axis=1)
        usable = means > 0
        stacked, forecasts, means = stacked[usable], forecasts[usable], means[usable, None]
        groups = self.encoder_.transform(X)
        known = Known(y / scale, forecasts / means, groups, alike[usable])
        weights = self._weigh(known)
        outputs = np.concatenate([weights.groups.get(name, np.zeros(one.shape[1])) for name, one in groups.items()])
        summed = weights.experts @ (stacked / means) if len(stacked) else np.zeros(1 + matrix.shape[1])
        adapted: np.ndarray = scale * (summed + np.concatenate([[weights.constant], outputs]))
        return adapted

    @abstractmethod
    def _weigh(self, known: Known) -> Weights:
        """Return the weights of a task's forecast, over the mean of its known rows."""

    def _matrix(self, X: pd.DataFrame) -> np.ndarray:
        return np.hstack([np.empty((len(X), 0)), *self.encoder_.transform(X).values()])

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        tasks = task_labels(X, self.columns_)
        forecast = np.full((len(X), len(self.targets_)), np.nan)
        for start in range(0, len(X), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            matrix = self._matrix(X.iloc[part])
            for index, task, rows in self._questions(tasks[part]):
                target = self.targets_[index]
                known = task if task in self.weights_[target] else POOLED
                weights, floor = np.array(self.weights_[target][known]), self.floors_[target][known]
                # a row's sum in a fixed order, so that one row and many are rounded alike
                sums = weights[0] + (matrix[rows] * weights[1:]).sum(axis=1)
                forecast[start + rows, index] = np.log(np.maximum(sums, floor))
        return forecast

    def _save(self, folder: Path) -> None:
        state = {
            "items": [column.name for column in self.items_],
            "encoder": self.encoder_.to_state(),
            "weights": self.weights_,
            "floors": self.floors_,
        }
        write_json(folder / "tasks.json", state)

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "tasks.json")
        self.items_ = tuple(column for column in self.columns_ if column.name in set(state["items"]))
        self.encoder_ = ItemEncoder.from_state(state["encoder"], self.items_)
        self.weights_, self.floors_ = state["weights"], state["floors"]


def _alike(own: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> np.ndarray:
    """Return which share of a task's descriptions each other task has too, 0 without any. Shapes: (others,)."""
    return np.array([sum(one.get(name) == own[name] for name in own) / max(1, len(own)) for one in others], dtype=float)


def _expert(matrix: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the ridge solution with the penalty of the smallest cross-validated error, (1 + outputs,).

    Shapes: matrix (n, outputs), y (n,); every fifth row is of one fold.
    """
    fold = np.arange(len(y)) % _FOLDS
    errors = np.zeros(len(_PENALTIES))
    for number in range(_FOLDS):
        fitted = _ridge(matrix[fold != number], y[fold != number])
        left = fold == number
        errors += [float(((one[0] + matrix[left] @ one[1:] - y[left]) ** 2).sum()) for one in fitted]
    return _ridge(matrix, y)[int(np.argmin(errors))]


def _ridge(matrix: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the ridge solutions of every penalty, the constant first, from one eigendecomposition of the smaller side.

    Shapes: matrix (n, outputs), y (n,) -> (1 + outputs,) each.
    """
    center, constant = matrix.mean(axis=0), float(y.mean())
    centerd, aims = matrix - center, y - constant
    solutions = []
    if len(y) <= matrix.shape[1]:
        values, vectors = np.linalg.eigh(centerd @ centerd.T)
        projected = vectors.T @ aims
        solutions = [centerd.T @ (vectors @ (projected / (np.maximum(values, 0) + one))) for one in _PENALTIES]
    else:
        values, vectors = np.linalg.eigh(centerd.T @ centerd)
        projected = vectors.T @ (centerd.T @ aims)
        solutions = [vectors @ (projected / (np.maximum(values, 0) + one)) for one in _PENALTIES]
    return [np.concatenate([[constant - center @ one], one]) for one in solutions]
