"""Indexes of measured results: those nearest to a machine, and those of exactly the described one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, list_rows
from perfcast.inference.reference_data import ReferenceData
from perfcast.inference.rules.presentation import Presentation
from perfcast.schema.display_names import column_label
from perfcast.schema.table import Kind, Role, Table, Tag
from perfcast.uncertainty.conformal import UncertaintyModel
from perfcast.uncertainty.in_domain import gower_distances
from perfcast.utils.model_files import read_arrays
from perfcast.utils.terminal_tables import format_number

_NEIGHBORS = "neighbors.npz"


class NeighborIndex:
    """Index that finds the nearest measured results of a task.

    The distance is the sum over groups of columns of Gower's distance, weighted by what the calibration found the group
    to add to the expected error, at least by the error at distance 0, and that error once more for another entity.
    Units: natural logarithms of the score; 0.05 is an expected error of 5 % more.
    Shapes: `arrays` has of every group of `InDomainModel` the distinct values, `<group>.values` (columns, m) float32,
    and the number of those of every measured row, `<group>.numbers` (rows,).
    """

    def __init__(self, measured: Table, arrays: dict[str, Any], calibrated: UncertaintyModel) -> None:
        self._arrays, self.calibrated = arrays, calibrated
        self.tasks = measured.frame[measured.column_of(Tag.TASK)].astype(str).to_numpy()
        self._entity = measured.column_of(Tag.ENTITY)
        self._entities = measured.frame[self._entity].astype(str).to_numpy()
        self._rows_of = cache(lambda task: np.flatnonzero(self.tasks == task))

    def find_nearest(
        self, X: pd.DataFrame, tasks: pd.Series, count: int, encoded: np.ndarray | None = None
    ) -> list[list[tuple[int, float]]]:
        """Return for every row the numbers of the nearest measured rows of its task and their distances, nearest first.

        Of rows that are alike in everything encoded, the newest (last) comes first. X has the features of training;
        `encoded` are its rows by `InDomainModel.encode`, some cells masked: those have no weight.
        """
        encoded = self.calibrated.in_domain.encode(X) if encoded is None else encoded
        known: dict[tuple[str, bytes], np.ndarray] = {}
        nearest, entities = [], X[self._entity].astype(str)
        for row, task, entity in zip(encoded.astype(np.float32), tasks.astype(str), entities, strict=True):
            rows = self._rows_of(task)
            far = self._distances(row, rows, known)
            far += self.calibrated.calibration.base * (self._entities[rows] != entity)
            # the newest wins a tie, so all rows as near as the last one shown are sorted
            last = np.partition(far, count - 1)[count - 1] if len(far) > count else np.inf
            near = np.flatnonzero(far <= last)
            order = near[np.lexsort((-rows[near], far[near]))[:count]]
            nearest.append([(int(rows[place]), float(far[place])) for place in order])
        return nearest

    def _distances(self, row: np.ndarray, rows: np.ndarray, known: dict[tuple[str, bytes], np.ndarray]) -> np.ndarray:
        """Return distances to some measured rows; `known` caches those to the distinct values of a group, by values."""
        weights = self.calibrated.calibration.weights
        far = np.zeros(len(rows))
        for group, span, numeric in self.calibrated.in_domain.parts():
            distinct, numbers = self._arrays[f"{group}.values"].T, self._arrays[f"{group}.numbers"]
            key = (group, row[span].tobytes())
            if key not in known:
                known[key] = gower_distances(row[span], distinct, numeric)
            far += max(weights.get(group, 0.0), self.calibrated.calibration.base) * known[key][numbers[rows]]
        return far

    def save(self, folder: Path) -> None:
        """Write the arrays."""
        np.savez(folder / _NEIGHBORS, **self._arrays)

    @classmethod
    def load(cls, folder: Path, measured: Table, calibrated: UncertaintyModel) -> Self:
        """Read what `save` wrote."""
        return cls(measured, read_arrays(folder / _NEIGHBORS), calibrated)


def group_distinct(encoded: np.ndarray, calibrated: UncertaintyModel) -> dict[str, Any]:
    """Return the arrays of a `NeighborIndex` of encoded rows, (measured rows, encoded columns)."""
    arrays = {}
    for group, span, _ in calibrated.in_domain.parts():
        columns = np.ascontiguousarray(encoded[:, span], dtype=np.float32)
        # compared as bytes: missing values are alike then
        texts = columns.view(f"V{columns.itemsize * columns.shape[1]}").ravel()
        _, first, numbers = np.unique(texts, return_index=True, return_inverse=True)
        arrays[f"{group}.values"], arrays[f"{group}.numbers"] = columns[first].T, numbers.astype(np.int32)
    return arrays


MAX_RESULTS = 5
"""Results that are listed by their ids, the newest first; more are only counted."""

_NO_MONTH = -(2**31)
"""Month of a result without a date: the oldest."""

_TOLERANCE = 1e-6
"""Relative difference of two numbers that counts as none: units are converted."""


@dataclass(frozen=True)
class PublishedResult:
    """One published result of the machine; `tester` is "" where unknown. Units: `score` that of the target."""

    result: str
    score: float
    published: str
    tester: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.result, self.tester and f"tested by {self.tester}", self.published)))


@dataclass(frozen=True)
class PublishedGroup:
    """Published results of the machine with one set-up in one year (None without dates)."""

    setup: str
    year: int | None
    count: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class PublishedScores:
    """Published results of the described machine, or the nearest of its kind: their number, range and median.

    `groups` are by set-up and year, the newest first; `results` has the newest results with their ids. `differs` tells
    what the newest one has instead of what the user gave, none for results of exactly this machine. Units: those of
    the target.
    """

    count: int
    low: float
    median: float
    high: float
    groups: tuple[PublishedGroup, ...] = ()
    results: tuple[PublishedResult, ...] = ()
    differs: tuple[str, ...] = ()


class PublishedRows(NamedTuple):
    """Measured rows of a machine, and what the newest of them has instead of given values."""

    rows: tuple[int, ...] = ()
    differs: tuple[str, ...] = ()


OTHER_SOFTWARE = " with other software"


def describe_outside(exact: PublishedScores | None, alike: PublishedScores | None, low: float, high: float) -> str:
    """Return the published results whose median lies outside an interval, "" where there are none.

    Args: `exact` are those of the described machine; without any, `alike` count, those with other software.
    """
    published = exact or alike
    if published is None or low <= published.median <= high:
        return ""
    counted = "1 result" if published.count == 1 else f"{published.count} results"
    setup = "" if exact else OTHER_SOFTWARE
    return f"{counted}{setup}, median {format_number(published.median)}"


class PublishedIndex:
    """Index of measured results by task and machine: whatever is tagged IDENTITY.

    Results are summarized by the set-up columns and by year. A machine differs from another with other
    values of the identifying ones.
    """

    def __init__(self, reference_data: ReferenceData, presentation: Presentation) -> None:
        measured = reference_data.measured
        self._reference_data, self._presentation = reference_data, presentation
        self._keys = [measured.column_of(Tag.TASK), *measured.select(tag=Tag.IDENTITY)]
        groups = measured.frame.groupby(self._keys, observed=True).indices
        # other keys of such a group are other names of the same, or follow from it
        named = {column.group for column in measured.columns if Tag.IDENTITY in column.tags}
        self._rows: dict[Any, np.ndarray] = {key: np.asarray(rows) for key, rows in groups.items()}
        self._matched = [
            column.name
            for column in measured.columns
            if column.role in (Role.FEATURE, Role.KEY)
            and column.kind in (Kind.NUMERICAL, Kind.CATEGORICAL)
            and column.name not in self._keys
            and not (column.role is Role.KEY and column.group in named)
        ]
        self._numerical = {column.name for column in measured.columns if column.kind is Kind.NUMERICAL}
        self._summarize = lru_cache(maxsize=4096)(self._summarize_rows)

    def find_rows(self, machines: Cells, given: np.ndarray, known: np.ndarray) -> list[PublishedRows]:
        """Return the measured rows of every machine that differ from it in the fewest given values.

        Args: `given` and `known` are flags of all cells, (n, columns) bool: those that the user gave, and those that
        are not assumed. What is tagged IDENTITY must be known, but for `assumed_identity`. A value that a result lacks
        does not differ.
        """
        place_of = {name: place for place, name in enumerate(machines)}
        keys = list_rows(machines, self._keys)
        columns = [(name, place_of[name]) for name in self._matched if name in place_of]
        named = [(name, at) for name, at in columns if given[:, at].any()]
        exact_keys = [name for name in self._keys if name not in self._presentation.assumed_identity]
        exact = np.asarray(known[:, [place_of[name] for name in exact_keys]].all(axis=1))
        matches: list[PublishedRows] = []
        for row, key in enumerate(keys):
            rows = self._rows.get(key, np.zeros(0, dtype=int)) if exact[row] else np.zeros(0, dtype=int)
            for name in self._presentation.identifying_columns:
                if name in place_of and known[row, place_of[name]]:
                    rows = rows[self._agree(name, machines[name][row], rows)]
            compared = [(name, machines[name][row]) for name, at in named if given[row, at]] if len(rows) else []
            if compared:
                differs = np.array([~self._agree(name, value, rows) for name, value in compared])
                count = differs.sum(axis=0)
                rows, differs = rows[count == count.min()], differs[:, count == count.min()]
                newest = self._labels[0][rows].argmax()
                different = [each for each, is_other in zip(compared, differs[:, newest], strict=True) if is_other]
                published = [(name, self._reference_data.column(name)[rows[newest]]) for name, _ in different]
                shown = (
                    f"{_show(column_label(name), other)}, not {_show('', value)}"
                    for (name, other), (_, value) in zip(published, different, strict=True)
                )
                matches.append(PublishedRows(tuple(rows.tolist()), tuple(shown)))
            else:
                matches.append(PublishedRows(tuple(rows.tolist())))
        return matches

    def summarize(self, match: PublishedRows, target: str) -> PublishedScores | None:
        """Return the published scores of measured rows, None where there is none."""
        scores = self._summarize(match.rows, target) if match.rows else None
        return replace(scores, differs=match.differs) if scores and match.differs else scores

    def _agree(self, name: str, given: Any, rows: np.ndarray) -> np.ndarray:
        values = self._reference_data.column(name)[rows]
        if name in self._numerical:
            return np.asarray((np.abs(values - given) <= _TOLERANCE * abs(given)) | np.isnan(values))
        return np.asarray((values == given) | (values == None))  # noqa: E711  (element by element)

    def _summarize_rows(self, rows: tuple[int, ...], target: str) -> PublishedScores | None:
        places = np.array(rows)
        scores = self._reference_data.column(target)[places]
        places, scores = places[~np.isnan(scores)], scores[~np.isnan(scores)]
        if not len(places):
            return None
        months, years, setups, ids, testers = self._labels
        if self._presentation.newest_alone:
            is_newest = months[places] == months[places].max()
            places, scores = places[is_newest], scores[is_newest]
        newest = places[np.argsort(-months[places], kind="stable")[:MAX_RESULTS]].tolist()
        score_by_row = dict(zip(places.tolist(), scores.tolist(), strict=True))
        groups: dict[tuple[int, str], list[float]] = {}
        for row, score in score_by_row.items():
            groups.setdefault((years[row], setups[row]), []).append(score)
        ordered = ((setup, year, groups[year, setup]) for year, setup in sorted(groups, reverse=True))
        grouped = tuple(PublishedGroup(setup, year or None, *_summary(among)) for setup, year, among in ordered)
        results = tuple(
            PublishedResult(str(ids[row]), score_by_row[row], _name_month(months[row]), testers[row]) for row in newest
        )
        return PublishedScores(*_summary(scores.tolist()), groups=grouped, results=results)

    @cached_property
    def _labels(self) -> tuple[np.ndarray, list[int], list[str], np.ndarray, list[str]]:
        """Return of every measured row its month since 1970, its year (0 without a date), set-up, id and tester."""
        measured = self._reference_data.measured
        frame, times = measured.frame, measured.select(tag=Tag.TIME)
        when = frame[times[0]] if times else pd.Series(pd.NaT, frame.index, dtype="datetime64[us]")
        setups = pd.Series("", frame.index)
        for name in filter(frame.columns.__contains__, self._presentation.setup_columns):
            setups = (setups + " " + frame[name].astype("object").fillna("").astype("str")).str.strip()
        dated = when.to_numpy(dtype="datetime64[M]")
        months = np.where(np.isnat(dated), _NO_MONTH, dated.astype(np.int64))
        ids = self._reference_data.column(measured.column_of(Tag.ROW))
        testers = pd.Series("", frame.index)
        for name in measured.select(tag=Tag.TESTER):
            testers = frame[name].astype("object").fillna("").astype("str")
        return months, when.dt.year.fillna(0).astype(int).tolist(), setups.tolist(), ids, testers.tolist()


def _name_month(month: int) -> str:
    return "" if month == _NO_MONTH else str(np.datetime64(int(month), "M"))


def _show(name: str, value: Any) -> str:
    return f"{name} {value:g}".strip() if isinstance(value, float) else f"{name} {value}".strip()


def _summary(scores: Sequence[float]) -> tuple[int, float, float, float]:
    """Return number, lowest, median and highest score."""
    return len(scores), min(scores), float(median(scores)), max(scores)
