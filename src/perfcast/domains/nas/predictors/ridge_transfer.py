"""Prediction of new tasks from a few rows: a ridge regression on the predictions of linear experts of known tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, groups_of, measured_rows, task_labels
from perfcast.schema.table import Column, Kind, Tag
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_FOLDS = 5
_PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Penalties of an expert."""
_FLOOR = 0.1
"""Share of a task's smallest training value that a prediction is at least: sums of weights may go below 0."""
_BLOCK = 8192
"""Rows that are predicted at once, which bounds the memory."""


def select_item_columns(X: pd.DataFrame, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the feature columns that differ between the rows of one task: the others describe the task itself.

    All of them where no task has two rows that differ in anything.
    """
    tasks = task_labels(X, columns)
    features = [column for column in feature_columns(columns) if Tag.TASK not in column.tags]
    is_first = ~pd.Series(tasks).duplicated().to_numpy()
    first_of_task = pd.Series(np.flatnonzero(is_first), index=tasks[is_first])
    leaders = first_of_task.loc[tasks].to_numpy()
    differing = []
    for column in features:
        codes = pd.factorize(X[column.name], use_na_sentinel=False)[0]
        if (codes != codes[leaders]).any():
            differing.append(column)
    return tuple(differing or features)


def thin_rows(tasks: np.ndarray, max_samples: int) -> np.ndarray:
    """Return the positions of at most `max_samples` rows of each task, evenly spread over its rows, in order."""
    thinned = []
    for task in np.unique(tasks):
        rows = np.flatnonzero(tasks == task)
        count = min(len(rows), max_samples)
        places = np.linspace(0, len(rows) - 1, count).round().astype(int)
        thinned.append(rows[places])
    return np.sort(np.concatenate(thinned))


class ItemEncoder:
    """Encode item columns by group, centered and of about one length each, and pairs of categories of a group.

    A group's outputs are those of `LinearEncoder` without logarithms, minus their means over the rows given to `fit`,
    over the square root of its number of columns. Pairs, products of the outputs of two categorical columns of one
    group, exist where there are at most `max_pairs` of them. They are halved.
    """

    def __init__(self, max_pairs: int = 0) -> None:
        self.max_pairs = max_pairs
        self.encoders: dict[str, LinearEncoder] = {}
        self.centers: dict[str, np.ndarray] = {}
        self.pairs: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def fit(self, X: pd.DataFrame, columns: Sequence[Column]) -> Self:
        """Learn levels, ranges and means from training rows."""
        for group in sorted({column.group for column in columns}):
            members = [column for column in columns if column.group == group]
            self.encoders[group] = LinearEncoder(log=False, min_count=2).fit(X, members)
        pairs = {group: self._category_pairs(group) for group in self.encoders}
        if sum(len(first) for first, _ in pairs.values()) <= self.max_pairs:
            self.pairs = {group: (first, second) for group, (first, second) in pairs.items() if len(first)}
        self.centers = {name: values.mean(axis=0) for name, values in self._encode(X).items()}
        return self

    def transform(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return the outputs of every group, (n, outputs), and under `<group> pairs` those of its pairs."""
        return {name: values - self.centers[name] for name, values in self._encode(X).items()}

    def _encode(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        outputs: dict[str, np.ndarray] = {}
        for group, encoder in self.encoders.items():
            encoded = encoder.transform(X)
            outputs[group] = encoded / np.sqrt(max(1, len(encoder.columns_)))
            if group in self.pairs:
                first, second = self.pairs[group]
                outputs[f"{group} pairs"] = 0.5 * encoded[:, first] * encoded[:, second]
        return outputs

    def _category_pairs(self, group: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the outputs of two different categorical columns, for all pairs of them."""
        encoder = self.encoders[group]
        names = np.array([name.split("=")[0] for name in encoder.names_], dtype=object)
        kinds = {column.name: column.kind for column in encoder.columns_}
        is_category = np.array([kinds[name] is Kind.CATEGORICAL for name in names], dtype=bool)
        first, second = np.triu_indices(len(names), 1)
        is_pair = is_category[first] & is_category[second] & (names[first] != names[second])
        return first[is_pair], second[is_pair]

    def to_state(self) -> dict[str, Any]:
        """Return all that was learned as JSON values."""
        return {
            "max_pairs": self.max_pairs,
            "encoders": {group: encoder.to_state() for group, encoder in self.encoders.items()},
            "centers": {name: values.tolist() for name, values in self.centers.items()},
            "paired": sorted(self.pairs),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], columns: Iterable[Column]) -> Self:
        """Build the encoder that gave `state` for these declarations."""
        by_name = {column.name: column for column in columns}
        encoder = cls(state["max_pairs"])
        for group, learned in sorted(state["encoders"].items()):
            members = [by_name[name] for name in learned["columns"]]
            encoder.encoders[group] = LinearEncoder.from_state(learned, members)
        encoder.pairs = {group: encoder._category_pairs(group) for group in state["paired"]}
        encoder.centers = {name: np.array(values, dtype=float) for name, values in state["centers"].items()}
        return encoder


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeTransfer(Predictor):
    """Weighted sum of encoded item columns on targets, per task; a few rows of a new task suffice.

    An expert is a ridge regression on a task with more than `few_shot_max_samples` rows, of which it learns at most
    `max_samples_per_task`, evenly spread. Cross-validation chooses its penalty. It predicts its own task.

    A task of fewer rows has a weighted sum of the experts and of the item columns, shrunk to the experts' plain mean.
    The penalty, one of `alphas`, has the smallest leave-one-out error on its rows. The penalty of a column's weight is
    `column_penalty` times that of an expert's, because an expert is a similar task. A task that training did not have
    gets the mean of all weights.

    Targets are not in logarithms: the time of a network is about the sum of its layers' times.
    """

    few_shot_max_samples: int = 100
    max_samples_per_task: int = 4000
    alphas: Sequence[float] = (0.0001, 0.001, 0.01, 0.1, 1.0)
    column_penalty: float = 100.0

    items_: tuple[Column, ...] = field(init=False)
    encoder_: ItemEncoder = field(init=False)
    weights_: dict[str, dict[str, list[float]]] = field(init=False)
    """Constant and weights by target and task."""
    floors_: dict[str, dict[str, float]] = field(init=False)
    """Smallest prediction by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        masks = measured_rows(log_y, self.targets_)
        tasks = task_labels(X, self.columns_).astype(str)
        thinned = thin_rows(tasks, self.max_samples_per_task)
        X = X.iloc[thinned]
        tasks = tasks[thinned]
        y = np.exp(log_y[thinned])

        sizes = pd.Series(tasks).value_counts()
        large = sizes[sizes > self.few_shot_max_samples]
        self.items_ = select_item_columns(X, self.columns_)
        self.encoder_ = ItemEncoder(int(large.min()) if len(large) else 0).fit(X, self.items_)
        self.weights_ = {}
        self.floors_ = {}
        for index, (target, mask) in enumerate(zip(self.targets_, masks, strict=True)):
            groups = groups_of(tasks, mask[thinned], pooled=False)
            weights: dict[str, np.ndarray] = {}
            for task, rows in groups.items():
                if rows.sum() > self.few_shot_max_samples:
                    weights[task] = _fit_expert(self._matrix(X[rows]), y[rows, index])
            experts = list(weights.values())
            for task, rows in groups.items():
                if task not in weights:
                    weights[task] = self._adapt(X[rows], y[rows, index], experts)
            weights[POOLED] = np.mean(list(weights.values()), axis=0)
            self.weights_[target] = {task: values.tolist() for task, values in weights.items()}
            floors = {task: _FLOOR * float(y[rows, index].min()) for task, rows in groups.items()}
            floors[POOLED] = min(floors.values())
            self.floors_[target] = floors

    def _adapt(
        self,
        X: pd.DataFrame,
        y: np.ndarray,
        experts: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Return the weights of a task with few rows, (1 + outputs,), the constant first.

        Shapes: y (n,), experts (1 + outputs,) each.
        """
        outputs = self.encoder_.transform(X)
        matrix = self._matrix(X)
        scale = float(y.mean())
        values = y / scale

        # predictions of each expert over their mean, (experts, n): experts of slow devices count as others
        weights = np.array(experts).reshape(len(experts), 1 + matrix.shape[1])
        predictions = weights[:, :1] + weights[:, 1:] @ matrix.T
        means = predictions.mean(axis=1)
        is_usable = means > 0
        means = means[is_usable, None]
        weights = weights[is_usable] / means
        predictions = predictions[is_usable] / means

        count = len(predictions)
        mean = predictions.mean(axis=0) if count else 0.0
        share = 1 / np.sqrt(self.column_penalty)
        design = np.hstack([(predictions - mean).T, *(share * part for part in outputs.values())])
        solution = self._solve(design, values - (mean if count else 1.0))
        of_columns = share * solution[count:]
        if not count:
            return np.asarray(scale * np.concatenate([[1.0], of_columns]))
        # the design has differences from the experts' mean, so the experts' weights sum to 1
        of_experts = 1 / count + solution[:count] - solution[:count].mean()
        return np.asarray(scale * (of_experts @ weights + np.concatenate([[0.0], of_columns])))

    def _solve(self, design: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the ridge solution with the penalty of the smallest leave-one-out error. Shapes: (n, p), (n,)."""
        kernel = design @ design.T
        errors = [float((_left_out_errors(kernel, values, alpha) ** 2).sum()) for alpha in self.alphas]
        alpha = float(self.alphas[int(np.argmin(errors))])
        return np.asarray(design.T @ np.linalg.solve(kernel + alpha * np.eye(len(values)), values))

    def _matrix(self, X: pd.DataFrame) -> np.ndarray:
        return np.hstack([np.empty((len(X), 0)), *self.encoder_.transform(X).values()])

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        tasks = task_labels(X, self.columns_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for start in range(0, len(X), _BLOCK):
            block = slice(start, start + _BLOCK)
            matrix = self._matrix(X.iloc[block])
            for index, name, rows in self._outputs(tasks[block]):
                target = self.targets_[index]
                task = name if name in self.weights_[target] else POOLED
                weights = np.array(self.weights_[target][task])
                # a row's sum in a fixed order, so that one row and many are rounded alike
                sums = weights[0] + (matrix[rows] * weights[1:]).sum(axis=1)
                logs[start + rows, index] = np.log(np.maximum(sums, self.floors_[target][task]))
        return logs

    def _save(self, folder: Path) -> None:
        state = {
            "items": [column.name for column in self.items_],
            "encoder": self.encoder_.to_state(),
            "weights": self.weights_,
            "floors": self.floors_,
        }
        write_json(folder / "tasks.json", state)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "tasks.json")
        names = set(state["items"])
        self.items_ = tuple(column for column in self.columns_ if column.name in names)
        self.encoder_ = ItemEncoder.from_state(state["encoder"], self.items_)
        self.weights_ = state["weights"]
        self.floors_ = state["floors"]


def _left_out_errors(kernel: np.ndarray, values: np.ndarray, alpha: float) -> np.ndarray:
    """Return the error of each row when it is predicted from the others. Source: Allen, 1974, Technometrics 16(1)."""
    inverse = np.linalg.inv(kernel + alpha * np.eye(len(values)))
    return np.asarray((inverse @ values) / np.diag(inverse))


def _fit_expert(matrix: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the ridge solution with the penalty of the smallest cross-validated error, (1 + outputs,).

    Shapes: matrix (n, outputs), y (n,); every fifth row is in one fold.
    """
    fold = np.arange(len(y)) % _FOLDS
    errors = np.zeros(len(_PENALTIES))
    for number in range(_FOLDS):
        fitting = fold != number
        testing = fold == number
        for place, weights in enumerate(_solve_ridge(matrix[fitting], y[fitting])):
            predicted = weights[0] + matrix[testing] @ weights[1:]
            errors[place] += float(((predicted - y[testing]) ** 2).sum())
    return _solve_ridge(matrix, y)[int(np.argmin(errors))]


def _solve_ridge(matrix: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the ridge solutions of every penalty, the constant first, from one eigendecomposition of the smaller side.

    Shapes: matrix (n, outputs), y (n,) -> (1 + outputs,) each.
    """
    center = matrix.mean(axis=0)
    constant = float(y.mean())
    centered = matrix - center
    residual = y - constant
    is_wide = len(y) <= matrix.shape[1]
    values, vectors = np.linalg.eigh(centered @ centered.T if is_wide else centered.T @ centered)
    projected = vectors.T @ (residual if is_wide else centered.T @ residual)
    solutions = []
    for alpha in _PENALTIES:
        weights = vectors @ (projected / (np.maximum(values, 0) + alpha))
        if is_wide:
            weights = centered.T @ weights
        solutions.append(np.concatenate([[constant - center @ weights], weights]))
    return solutions
