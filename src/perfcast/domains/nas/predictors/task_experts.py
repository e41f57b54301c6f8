"""Predictors of new tasks from a few rows: linear experts of well-measured tasks, and their ridge regression."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns, labels
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, groups_of, measured_rows, task_labels
from perfcast.schema.table import Column, Kind, Tag
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_FOLDS = 5
_PENALTIES = (0.1, 1.0, 10.0, 100.0)
_FLOOR = 0.1
"""Share of a task's smallest training value that a prediction is at least: sums of weights may go below 0."""

_BLOCK = 8192


def select_item_columns(X: pd.DataFrame, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the feature columns that differ between the rows of one task: the others describe the task itself.

    All of them where no task has two rows that differ in anything.
    """
    tasks = task_labels(X, columns)
    features = [column for column in feature_columns(columns) if Tag.TASK not in column.tags]
    first = ~pd.Series(tasks).duplicated().to_numpy()
    leaders = pd.Series(np.flatnonzero(first), index=tasks[first]).loc[tasks].to_numpy()
    differing = []
    for column in features:
        codes = pd.factorize(X[column.name], use_na_sentinel=False)[0]
        if (codes != codes[leaders]).any():
            differing.append(column)
    return tuple(differing or features)


def describe_tasks(X: pd.DataFrame, columns: Sequence[Column], items: Iterable[Column]) -> dict[str, dict[str, str]]:
    """Return the value of every task in the categorical columns that are no item's: task -> column -> value."""
    item_names = {column.name for column in items}
    tasks, first = np.unique(task_labels(X, columns).astype(str), return_index=True)
    values = {
        column.name: labels(X.iloc[first], column)
        for column in feature_columns(columns)
        if column.kind is Kind.CATEGORICAL and Tag.TASK not in column.tags and column.name not in item_names
    }
    return {
        str(task): {name: str(texts[index]) for name, texts in values.items() if texts[index] is not None}
        for index, task in enumerate(tasks)
    }


def thin_rows(tasks: np.ndarray, max_samples: int) -> np.ndarray:
    """Return the positions of at most `max_samples` rows of each task, evenly spread over its rows, in order."""
    thinned = []
    for task in np.unique(tasks):
        rows = np.flatnonzero(tasks == task)
        thinned.append(rows[np.linspace(0, len(rows) - 1, min(len(rows), max_samples)).round().astype(int)])
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
        categorical = np.array([kinds[name] is Kind.CATEGORICAL for name in names], dtype=bool)
        first, second = np.triu_indices(len(names), 1)
        mask = categorical[first] & categorical[second] & (names[first] != names[second])
        return first[mask], second[mask]

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
            encoder.encoders[group] = LinearEncoder.from_state(learned, [by_name[name] for name in learned["columns"]])
        encoder.pairs = {group: encoder._category_pairs(group) for group in state["paired"]}
        encoder.centers = {name: np.array(values, dtype=float) for name, values in state["centers"].items()}
        return encoder


@dataclass(frozen=True)
class FewShotTask:
    """The few rows of a task, and the experts' predictions of them.

    Shapes: values (n,) over their mean; experts (experts, n), each over its mean over the rows; outputs group -> (n,
    outputs); similarity (experts,), share of the task's descriptions that each expert's task has too.
    """

    values: np.ndarray
    experts: np.ndarray
    outputs: dict[str, np.ndarray]
    similarity: np.ndarray


@dataclass(frozen=True)
class TaskWeights:
    """Weights of a prediction: a constant, experts (each over its mean over the task's rows), and outputs by group."""

    constant: float
    experts: np.ndarray
    outputs: dict[str, np.ndarray]


@dataclass(kw_only=True, eq=False, repr=False)
class TaskExpertsPredictor(Predictor):
    """Weighted sum of encoded item columns on targets, per task; a few rows of a new task suffice.

    An expert is a ridge regression on a task with more than `few_shot_max_samples` rows, of which it learns at most
    `max_samples_per_task`, evenly spread. Cross-validation chooses its penalty. It predicts its own task. A task of
    fewer rows gets the weights that `_weigh` computes from them and from the experts' predictions. A task that training
    did not have gets the mean of all weights. Targets are not in logarithms: the time of a network is about the sum of
    its layers' times.
    """

    few_shot_max_samples: int = 100
    max_samples_per_task: int = 4000

    items_: tuple[Column, ...] = field(init=False)
    encoder_: ItemEncoder = field(init=False)
    weights_: dict[str, dict[str, list[float]]] = field(init=False)
    """Constant and weights by target and task."""
    floors_: dict[str, dict[str, float]] = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        masks = measured_rows(log_y, self.targets_)
        tasks = task_labels(X, self.columns_).astype(str)
        thinned = thin_rows(tasks, self.max_samples_per_task)
        X, tasks, y = X.iloc[thinned], tasks[thinned], np.exp(log_y[thinned])
        sizes = pd.Series(tasks).value_counts()
        large = sizes[sizes > self.few_shot_max_samples]
        self.items_ = select_item_columns(X, self.columns_)
        described = describe_tasks(X, self.columns_, self.items_)
        self.encoder_ = ItemEncoder(int(large.min()) if len(large) else 0).fit(X, self.items_)
        self.weights_, self.floors_ = {}, {}
        for index, (target, mask) in enumerate(zip(self.targets_, masks, strict=True)):
            groups = groups_of(tasks, mask[thinned], pooled=False)
            weights = {
                task: _fit_expert(self._matrix(X[rows]), y[rows, index])
                for task, rows in groups.items()
                if rows.sum() > self.few_shot_max_samples
            }
            experts, names = list(weights.values()), list(weights)
            for task, rows in groups.items():
                if task not in names:
                    similarity = _shared_descriptions(described[task], [described[name] for name in names])
                    weights[task] = self._adapt(X[rows], y[rows, index], experts, similarity)
            weights[POOLED] = np.mean(list(weights.values()), axis=0)
            self.weights_[target] = {task: values.tolist() for task, values in weights.items()}
            floors = {task: _FLOOR * float(y[rows, index].min()) for task, rows in groups.items()}
            self.floors_[target] = {**floors, POOLED: min(floors.values())}

    def _adapt(
        self, X: pd.DataFrame, y: np.ndarray, experts: Sequence[np.ndarray], similarity: np.ndarray
    ) -> np.ndarray:
        """Return the weights of a task with few rows, (1 + outputs,), the constant first.

        Shapes: y (n,), experts (1 + outputs,) each, similarity (experts,).
        """
        matrix, scale = self._matrix(X), float(y.mean())
        stacked = np.array(experts).reshape(len(experts), 1 + matrix.shape[1])
        predictions = stacked[:, :1] + stacked[:, 1:] @ matrix.T
        means = predictions.mean(axis=1)
        usable = means > 0
        stacked, predictions, means = stacked[usable], predictions[usable], means[usable, None]
        outputs = self.encoder_.transform(X)
        weights = self._weigh(FewShotTask(y / scale, predictions / means, outputs, similarity[usable]))
        by_output = [weights.outputs.get(name, np.zeros(values.shape[1])) for name, values in outputs.items()]
        summed = weights.experts @ (stacked / means) if len(stacked) else np.zeros(1 + matrix.shape[1])
        return np.asarray(scale * (summed + np.concatenate([[weights.constant], *by_output])))

    @abstractmethod
    def _weigh(self, task: FewShotTask) -> TaskWeights:
        """Return the weights of a task's prediction, over the mean of its few rows."""

    def _matrix(self, X: pd.DataFrame) -> np.ndarray:
        return np.hstack([np.empty((len(X), 0)), *self.encoder_.transform(X).values()])

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        tasks = task_labels(X, self.columns_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for start in range(0, len(X), _BLOCK):
            block = slice(start, start + _BLOCK)
            matrix = self._matrix(X.iloc[block])
            for index, name, rows in self._outputs(tasks[block]):
                by_task, floors = self.weights_[self.targets_[index]], self.floors_[self.targets_[index]]
                task = name if name in by_task else POOLED
                weights = np.array(by_task[task])
                # a row's sum in a fixed order, so that one row and many are rounded alike
                sums = weights[0] + (matrix[rows] * weights[1:]).sum(axis=1)
                logs[start + rows, index] = np.log(np.maximum(sums, floors[task]))
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
        self.items_ = tuple(column for column in self.columns_ if column.name in set(state["items"]))
        self.encoder_ = ItemEncoder.from_state(state["encoder"], self.items_)
        self.weights_, self.floors_ = state["weights"], state["floors"]


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeTransfer(TaskExpertsPredictor):
    """Weighted sum of the experts and of the item columns for a new task, shrunk to the experts' plain mean.

    The penalty, one of `alphas`, has the smallest leave-one-out error on the task's few rows. The penalty of a column's
    weight is `column_penalty` times that of an expert's, because an expert is a similar task.
    """

    alphas: Sequence[float] = (0.0001, 0.001, 0.01, 0.1, 1.0)
    column_penalty: float = 100.0

    def _weigh(self, task: FewShotTask) -> TaskWeights:
        count = len(task.experts)
        share = 1 / np.sqrt(self.column_penalty)
        mean = task.experts.mean(axis=0) if count else 0.0
        design = np.hstack([(task.experts - mean).T, *(share * values for values in task.outputs.values())])
        residual = task.values - (mean if count else 1.0)
        kernel = design @ design.T
        errors = [float((_left_out_errors(kernel, residual, alpha) ** 2).sum()) for alpha in self.alphas]
        alpha = float(self.alphas[int(np.argmin(errors))])
        weights = design.T @ np.linalg.solve(kernel + alpha * np.eye(len(residual)), residual)
        experts, outputs, begin = weights[:count], {}, count
        for name, values in task.outputs.items():
            outputs[name] = share * weights[begin : begin + values.shape[1]]
            begin += values.shape[1]
        if not count:
            return TaskWeights(1.0, experts, outputs)
        # the design has differences from the experts' mean, so the experts' weights sum to 1
        return TaskWeights(0.0, 1 / count + experts - experts.mean(), outputs)


def _left_out_errors(kernel: np.ndarray, values: np.ndarray, alpha: float) -> np.ndarray:
    """Return the error of each row when it is predicted from the others. Source: Allen, 1974, Technometrics 16(1)."""
    inverse = np.linalg.inv(kernel + alpha * np.eye(len(values)))
    return np.asarray((inverse @ values) / np.diag(inverse))


def _shared_descriptions(task: Mapping[str, str], others: Collection[Mapping[str, str]]) -> np.ndarray:
    """Return the share of a task's descriptions that each other task has too, 0 without any. Shapes: (others,)."""
    shared = [sum(other.get(name) == value for name, value in task.items()) for other in others]
    return np.array([count / max(1, len(task)) for count in shared], dtype=float)


def _fit_expert(matrix: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the ridge solution with the penalty of the smallest cross-validated error, (1 + outputs,).

    Shapes: matrix (n, outputs), y (n,); every fifth row is in one fold.
    """
    fold = np.arange(len(y)) % _FOLDS
    errors = np.zeros(len(_PENALTIES))
    for number in range(_FOLDS):
        fitting, testing = fold != number, fold == number
        solutions = _solve_ridge(matrix[fitting], y[fitting])
        errors += [float(((w[0] + matrix[testing] @ w[1:] - y[testing]) ** 2).sum()) for w in solutions]
    return _solve_ridge(matrix, y)[int(np.argmin(errors))]


def _solve_ridge(matrix: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the ridge solutions of every penalty, the constant first, from one eigendecomposition of the smaller side.

    Shapes: matrix (n, outputs), y (n,) -> (1 + outputs,) each.
    """
    center, constant = matrix.mean(axis=0), float(y.mean())
    centered, residual = matrix - center, y - constant
    if len(y) <= matrix.shape[1]:
        values, vectors = np.linalg.eigh(centered @ centered.T)
        projected = vectors.T @ residual
        solutions = [centered.T @ (vectors @ (projected / (np.maximum(values, 0) + alpha))) for alpha in _PENALTIES]
    else:
        values, vectors = np.linalg.eigh(centered.T @ centered)
        projected = vectors.T @ (centered.T @ residual)
        solutions = [vectors @ (projected / (np.maximum(values, 0) + alpha)) for alpha in _PENALTIES]
    return [np.concatenate([[constant - center @ weights], weights]) for weights in solutions]
