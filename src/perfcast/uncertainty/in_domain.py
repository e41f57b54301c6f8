"""Distances of a machine from the rows that a predictor was fitted on, by group of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import TreeEncoder
from perfcast.schema.table import Column, Tag
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_arrays, read_state

RESULTS = "few results"
OF_PAIR = "few results of the pair"
YOUNG = "young task"
AHEAD = "years ahead"
"""Names of the distances that belong to no group of columns."""

_MAX_REFERENCES = 4000
"""Distinct machines that a group is compared with: more only cost time."""

_UNKNOWN = 0.5
"""Distance of a stated number from a missing one: between equal and far."""

_IGNORED = np.inf
"""Encoded value that has no distance from any other."""

_MAX_AHEAD = 2.0
"""Years: the longest time ahead of a backtest."""


_DAYS = 365.25

_YOUNG_YEARS = 0.75
"""Age below which a task is young: software learns a task in its first two rounds. Of no age, 1 / (1 + years),
exp(-years), exp(-2 years) and this, this one had the best interval scores of rounds before the tested one."""

_AGAIN = "make it again, or fetch it again"


class InDomainModel:
    """Distances of machines from training rows.

    For every group of FEATURE columns: Gower's distance to the nearest of the group's distinct training values, 0
    (seen exactly so) to 1 (differs in everything). A number's distance is in units of the range that holds 90 % of the
    training rows, at most 1. `few results` is 1 / (1 + the training results of the same ENTITY), `years ahead` the time
    between the last training row and the row, 0 to 2. A table with PAIR columns has `few results of the pair`, too:
    of rows that are equal on all of them, and `young task`: 1 within nine months of the first training row of its TASK.
    Source: Gower, 1971, A General Coefficient of Similarity and Some of Its Properties, Biometrics 27(4).
    """

    def __init__(self) -> None:
        self.columns: tuple[Column, ...] = ()
        self.entity: str | None = None
        self.results: dict[str, int] = {}
        self.pairs: dict[str, int] = {}
        self.first: dict[str, pd.Timestamp] = {}
        self.last: pd.Timestamp | None = None
        self._groups: dict[str, _Group] = {}
        self._encoder: TreeEncoder | None = None

    def fit(self, X: pd.DataFrame, columns: Iterable[Column], when: pd.Series | None = None) -> Self:
        """Store training rows; `when` are their dates, where the dataset has them."""
        self.columns = tuple(columns)
        features = feature_columns(self.columns)
        self.entity = next((column.name for column in self.columns if Tag.ENTITY in column.tags), None)
        counts = pd.Series(dtype=int) if self.entity is None else X[self.entity].astype(str).value_counts()
        self.results = {str(entity): int(count) for entity, count in counts.items()}
        pairs = self._label_pairs(X).value_counts()
        self.pairs = {str(pair): int(count) for pair, count in pairs.items() if pair}
        if self.pairs and when is not None:
            first = when.groupby(self._tasks(X)).min()
            self.first = {str(task): day for task, day in first.items() if not pd.isna(day)}
        last = None if when is None else pd.DatetimeIndex(when).max()
        self.last = None if pd.isna(last) else last
        self._groups = {group: _Group.fit(X, members) for group, members in _by_group(features).items()}
        return self

    @property
    def names(self) -> list[str]:
        """The name of every distance."""
        of_pairs = [*([OF_PAIR] if self.pairs else []), *([YOUNG] if self.first else [])]
        return [*self._groups, RESULTS, *of_pairs, AHEAD]

    def _tasks(self, X: pd.DataFrame) -> pd.Series:
        return X[next(column.name for column in self.columns if Tag.TASK in column.tags)].astype(str)

    def _years_since_first(self, X: pd.DataFrame, when: pd.Series | None) -> np.ndarray:
        """Return how long ago the task of every row had its first training row, (n,), 0 for an unknown task."""
        last = pd.Timestamp(0) if self.last is None else self.last
        days = pd.DatetimeIndex(np.full(len(X), last) if when is None else when).fillna(last)
        first = pd.DatetimeIndex(self._tasks(X).map(self.first))
        years = (days - first).days.to_numpy(dtype=float) / _DAYS
        return np.maximum(np.nan_to_num(years), 0.0)

    def _label_pairs(self, X: pd.DataFrame) -> pd.Series:
        """Return the joined values of the PAIR columns, (n,), "" without such columns."""
        joined = pd.Series("", index=X.index, dtype=object)
        for column in self.columns:
            joined = joined + X[column.name].astype(str) + "\x1f" if Tag.PAIR in column.tags else joined
        return joined

    def distances(
        self,
        X: pd.DataFrame,
        when: pd.Series | None = None,
        ignored: pd.DataFrame | None = None,
        encoded: np.ndarray | None = None,
    ) -> pd.DataFrame:
        """Return the distances of rows, (n, len(names)), index as in X; a row without a date is 0 years ahead.

        Args: `ignored` (n, columns) bool marks the cells without weight, such as unknown ones; columns that it leaves
        out weigh. `encoded` is what `encode` returns, which is called without it.
        """
        encoded = self.mask(self.encode(X) if encoded is None else encoded, ignored)
        distances = self._group_distances(encoded)
        entities = [] if self.entity is None else X[self.entity].astype(str).tolist()
        counts = [self.results.get(entity, 0) for entity in entities] or np.zeros(len(X))
        distances[RESULTS] = 1 / (1 + np.asarray(counts, dtype=float))
        if self.pairs:
            distances[OF_PAIR] = 1 / (1 + self._label_pairs(X).map(self.pairs).fillna(0).to_numpy(dtype=float))
        if self.first:
            distances[YOUNG] = (self._years_since_first(X, when) < _YOUNG_YEARS).astype(float)
        ahead = np.zeros(len(X))
        if when is not None and self.last is not None:
            years = (pd.DatetimeIndex(when) - self.last).days.to_numpy(dtype=float) / _DAYS
            ahead = np.clip(np.nan_to_num(years), 0.0, _MAX_AHEAD)
        distances[AHEAD] = ahead
        return pd.DataFrame(distances, index=X.index)

    def _group_distances(self, encoded: np.ndarray) -> dict[str, np.ndarray]:
        return {name: self._groups[name].distances(encoded[:, span]) for name, span, _ in self.parts()}

    def ignore(self, distances: pd.DataFrame, encoded: np.ndarray, ignored: pd.DataFrame) -> pd.DataFrame:
        """Return distances of rows that some cells have no part in, see `distances`."""
        return distances.assign(**self._group_distances(self.mask(encoded, ignored)))

    def encode(self, X: pd.DataFrame) -> np.ndarray:
        """Return rows in units of the scales, (n, encoded columns): one group after another, see `parts`."""
        if self._encoder is None:  # one for all groups: every column is read once, and together
            vocabularies = {
                name: values for group in self._groups.values() for name, values in group.encoder.vocabularies_.items()
            }
            state = {"impute": False, "min_count": 1, "vocabularies": vocabularies, "imputed": {}}
            self._encoder = TreeEncoder.from_state(state, feature_columns(self.columns))
        places = {name: place for place, name in enumerate(self._encoder.names_)}
        scales = np.concatenate([np.ones(0), *(group.scales for group in self._groups.values())])
        return np.asarray(self._encoder.transform(X)[:, [places[name] for name in self._encoded_names]] / scales)

    def mask(self, encoded: np.ndarray, ignored: pd.DataFrame | None) -> np.ndarray:
        """Return encoded rows without the weight of some cells, see `distances`."""
        if ignored is None:
            return encoded
        mask = ignored.reindex(columns=self._encoded_names, fill_value=False).to_numpy(dtype=bool)
        return np.where(mask, _IGNORED, encoded)

    @property
    def _encoded_names(self) -> list[str]:
        return [name for group in self._groups.values() for name in group.encoder.names_]

    def parts(self) -> Iterator[tuple[str, slice, np.ndarray]]:
        """Yield every group's name, its columns among the encoded ones, and which of them are numbers, (columns,)."""
        begin = 0
        for name, group in self._groups.items():
            end = begin + len(group.numeric)
            yield name, slice(begin, end), group.numeric
            begin = end

    def save(self, folder: Path) -> None:
        """Write the fitted values: JSON, and arrays of numbers."""
        folder.mkdir(parents=True, exist_ok=True)
        state = {
            "columns": [asdict(column) for column in self.columns],
            "entity": self.entity,
            "results": self.results,
            "pairs": self.pairs,
            "first": {task: day.isoformat() for task, day in self.first.items()},
            "last": None if self.last is None else self.last.isoformat(),
            "encoders": {name: group.encoder.to_state() for name, group in self._groups.items()},
        }
        write_json(folder / "in_domain.json", state)
        for name, group in self._groups.items():
            np.savez(folder / f"{name}.npz", scales=group.scales, references=group.references)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        model = cls()
        state = read_state(folder / "in_domain.json")
        model.columns = tuple(Column(**{**entry, "tags": tuple(entry["tags"])}) for entry in state["columns"])
        model.entity = state["entity"]
        model.results = state["results"]
        model.pairs = state.get("pairs", {})
        model.first = {task: pd.Timestamp(day) for task, day in state.get("first", {}).items()}
        model.last = None if state["last"] is None else pd.Timestamp(state["last"])
        for name, columns in _by_group(feature_columns(model.columns)).items():
            arrays = read_arrays(folder / f"{name}.npz")
            encoder = TreeEncoder.from_state(state["encoders"][name], columns)
            scales = arrays["scales"]
            references = arrays["references"]
            if scales.shape != (len(columns),) or references.shape[1:] != scales.shape or not (scales > 0).all():
                fact = f"{name}.npz has shapes {scales.shape} and {references.shape}, or a scale of 0"
                raise UserError(f"{folder} must have the {len(columns)} columns of {name}", fact, _AGAIN)
            model._groups[name] = _Group(encoder, scales, references)
        return model


def gower_distances(row: np.ndarray, others: np.ndarray, numeric: np.ndarray) -> np.ndarray:
    """Return Gower's distance of one encoded row to others, (m,): 0 (equal) to 1 (different in everything).

    Ignored values of the row, see `InDomainModel.encode`, have the distance 0.
    Shapes: row (columns,), others (m, columns), numeric (columns,) bool.
    """
    apart = np.subtract(others, row)
    np.minimum(np.abs(apart, out=apart), 1.0, out=apart)
    apart[np.isnan(apart)] = _UNKNOWN
    missing = np.isnan(row)
    categorical = ~numeric
    apart[:, missing] = np.where(np.isnan(others[:, missing]), 0.0, _UNKNOWN)
    apart[:, categorical] = others[:, categorical] != row[categorical]
    apart[:, row == _IGNORED] = 0.0
    return np.asarray(apart.sum(axis=1) / max(1, len(numeric)))


def _by_group(columns: Iterable[Column]) -> dict[str, list[Column]]:
    groups: dict[str, list[Column]] = {}
    for column in sorted(columns, key=lambda column: column.group):
        groups.setdefault(column.group, []).append(column)
    return groups


_MAX_REMEMBERED = 100_000
"""Distinct rows of a group whose distance is remembered: a batch of machines repeats them."""


_MAX_COMPARED = 8_000_000
"""Distances of values to references that a group remembers: a machine shares most values with others. 64 MB."""

_WIDE = 250
"""Columns above which a group remembers no distances of values, because few repeat, and has fewer references."""


class _Group:
    """The distinct training values of one group of columns."""

    def __init__(self, encoder: TreeEncoder, scales: np.ndarray, references: np.ndarray) -> None:
        self.encoder = encoder
        self.scales = scales
        self.references = references
        self.numeric = np.ones(len(scales), dtype=bool)
        self.numeric[encoder.categorical_] = False
        # column by column, as they are compared
        self._turned = np.ascontiguousarray(references.T)
        self._gaps = np.isnan(references).any(axis=0)
        self._nearest_by_row: dict[bytes, float] = {}
        self._apart_by_value: dict[tuple[int, float | None], np.ndarray | None] = {}

    @classmethod
    def fit(cls, X: pd.DataFrame, columns: list[Column]) -> Self:
        encoder = TreeEncoder().fit(X, columns)
        encoded = encoder.transform(X)
        scales = np.array([_scale(values) for values in encoded.T])
        scales[encoder.categorical_] = 1.0
        distinct = pd.DataFrame(encoded / scales).drop_duplicates().to_numpy()
        # spread evenly over the rows in their order, which is that of time or names: no seed, the same every time
        most = _MAX_REFERENCES * _WIDE // max(_WIDE, len(columns))
        spread = np.linspace(0, len(distinct) - 1, min(len(distinct), most)).round().astype(int)
        return cls(encoder, scales, distinct[spread])

    def distances(self, encoded: np.ndarray) -> np.ndarray:
        """Return the distance to the nearest reference, (n,). Shapes: encoded (n, columns)."""
        keys = [row.tobytes() for row in encoded]
        new = {key: place for place, key in enumerate(keys) if key not in self._nearest_by_row}
        if len(self._nearest_by_row) + len(new) > _MAX_REMEMBERED:
            self._nearest_by_row.clear()
            new = {key: place for place, key in enumerate(keys)}
        for key, place in new.items():
            self._nearest_by_row[key] = self._nearest(encoded[place].tolist())
        return np.array([self._nearest_by_row[key] for key in keys], dtype=float)

    def _nearest(self, row: list[float]) -> float:
        if len(row) > _WIDE:
            return float(gower_distances(np.array(row), self.references, self.numeric).min())
        total = np.zeros(len(self.references))
        for column, value in enumerate(row):
            if value == _IGNORED:
                continue
            key = column, value if value == value else None  # noqa: PLR0124  (a missing value equals nothing)
            if key not in self._apart_by_value:
                if len(self._apart_by_value) >= _MAX_COMPARED // len(self.references):
                    self._apart_by_value.clear()
                self._apart_by_value[key] = self._apart(column, value)
            apart = self._apart_by_value[key]
            if apart is not None:
                total += apart
        return float(total.min()) / max(1, len(self.numeric))

    def _apart(self, column: int, value: float) -> np.ndarray | None:
        """Return Gower's distance of a value to the references in one column, (references,); None if all are 0."""
        others = self._turned[column]
        if not self.numeric[column]:
            apart = np.asarray(value != others, dtype=float)
        elif np.isnan(value):
            apart = np.where(np.isnan(others), 0.0, _UNKNOWN)
        else:
            apart = np.minimum(np.abs(value - others), 1.0)
            if self._gaps[column]:
                apart[np.isnan(apart)] = _UNKNOWN
        return apart if apart.any() else None


def _scale(values: np.ndarray) -> float:
    """Return the range that holds 90 % of the known values, 1 where they are all alike."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 1.0
    low, high = np.quantile(known, [0.05, 0.95])
    return float(high - low) or float(np.ptp(known)) or 1.0
