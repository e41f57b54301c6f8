"""Rows as items measured in tasks, such as networks on devices: which columns are the item's, and their encoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns, labels
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.task_rows import task_labels
from perfcast.schema.table import Column, Kind, Tag


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
