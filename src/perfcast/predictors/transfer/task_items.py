"""Rows as items measured in tasks, such as networks on devices: which columns are the item's, and their encoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.dense import LinearEncoder, feature_columns, labels
from perfcast.predictors.task_rows import task_labels
from perfcast.schema.table import Column, Kind, Tag


def item_columns(X: pd.DataFrame, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the feature columns that differ between the rows of one task: the others describe the task itself.

    All of them where no task has two rows that differ in anything.
    """
    tasks = task_labels(X, columns)
    own = [column for column in feature_columns(columns) if Tag.TASK not in column.tags]
    first = ~pd.Series(tasks).duplicated().to_numpy()
    leaders = pd.Series(np.flatnonzero(first), index=tasks[first]).loc[tasks].to_numpy()
    differing = []
    for column in own:
        codes = pd.factorize(X[column.name], use_na_sentinel=False)[0]
        if (codes != codes[leaders]).any():
            differing.append(column)
    return tuple(differing or own)


def task_descriptions(X: pd.DataFrame, columns: Sequence[Column], items: Iterable[Column]) -> dict[str, dict[str, str]]:
    """Return what the categorical columns that are no item's say of each task: task -> column -> value."""
    of_items = {column.name for column in items}
    tasks = task_labels(X, columns)
    _, first = np.unique(tasks.astype(str), return_index=True)
    own = [
        column
        for column in feature_columns(columns)
        if column.kind is Kind.CATEGORICAL and Tag.TASK not in column.tags and column.name not in of_items
    ]
    told = {column.name: labels(X.iloc[first], column) for column in own}
    return {
        str(tasks[row]): {name: str(values[place]) for name, values in told.items() if values[place] is not None}
        for place, row in enumerate(first)
    }


def at_most(tasks: np.ndarray, most: int) -> np.ndarray:
    """Return the positions of at most `most` rows of each task, evenly spread over its rows, in order."""
    parts = []
    for task in np.unique(tasks):
        rows = np.flatnonzero(tasks == task)
        parts.append(rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).round().astype(int)])
    return np.sort(np.concatenate(parts))


class ItemEncoder:
    """Encodes item columns by group, centerd and of about one length each; pairs of categories of a group after them.

    A group's outputs are those of `LinearEncoder` without logarithms, minus their means over the rows given to `fit`,
    over the square root of its number of columns. Pairs, products of the outputs of two categorical columns of one
    group, are there where there are at most `most_pairs` of them; they count a quarter.
    """

    def __init__(self, most_pairs: int = 0) -> None:
        self.most_pairs = most_pairs
        self.encoders: dict[str, LinearEncoder] = {}
        self.centers: dict[str, np.ndarray] = {}
        self.pairs: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def fit(self, X: pd.DataFrame, columns: Sequence[Column]) -> Self:
        """Learn levels, ranges and means from training rows."""
        groups: dict[str, list[Column]] = {}
        for column in columns:
            groups.setdefault(column.group, []).append(column)
        for group in sorted(groups):
            self.encoders[group] = LinearEncoder(log=False, min_count=2).fit(X, groups[group])
        found = {group: self._category_pairs(group) for group in self.encoders}
        if sum(len(first) for first, _ in found.values()) <= self.most_pairs:
            self.pairs = {group: pairs for group, pairs in found.items() if len(pairs[0])}
        self.centers = {}
        raw = self._raw(X)
        self.centers = {name: values.mean(axis=0) for name, values in raw.items()}
        return self

    def transform(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return the outputs of every group, (n, outputs), and under `<group> pairs` those of its pairs."""
        return {name: values - self.centers[name] for name, values in self._raw(X).items()}

    @property
    def groups(self) -> list[str]:
        """The groups of columns, in order."""
        return list(self.encoders)

    def _raw(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for group, encoder in self.encoders.items():
            plain = encoder.transform(X)
            found[group] = plain / np.sqrt(max(1, len(encoder.columns_)))
            if group in self.pairs:
                first, second = self.pairs[group]
                found[f"{group} pairs"] = 0.5 * plain[:, first] * plain[:, second]
        return found

    def _category_pairs(self, group: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the outputs of two different categorical columns, for all pairs of them."""
        encoder = self.encoders[group]
        of_column = np.array([name.split("=")[0] for name in encoder.names_], dtype=object)
        kinds = {column.name: column.kind for column in encoder.columns_}
        categorical = np.array([kinds[name] is Kind.CATEGORICAL for name in of_column], dtype=bool)
        first, second = np.triu_indices(len(of_column), 1)
        kept = categorical[first] & categorical[second] & (of_column[first] != of_column[second])
        return first[kept], second[kept]

    def to_state(self) -> dict[str, Any]:
        """Return all that was learned as JSON values."""
        return {
            "most_pairs": self.most_pairs,
            "encoders": {group: encoder.to_state() for group, encoder in self.encoders.items()},
            "centers": {name: values.tolist() for name, values in self.centers.items()},
            "paired": sorted(self.pairs),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], columns: Iterable[Column]) -> Self:
        """Build the encoder that gave `state` for these declarations."""
        by_name = {column.name: column for column in columns}
        encoder = cls(state["most_pairs"])
        for group, own in sorted(state["encoders"].items()):
            encoder.encoders[group] = LinearEncoder.from_state(own, [by_name[name] for name in own["columns"]])
        encoder.pairs = {group: encoder._category_pairs(group) for group in state["paired"]}
        encoder.centers = {name: np.array(values, dtype=float) for name, values in state["centers"].items()}
        return encoder
