"""Published results of exactly the described machine: the measured answer that stands before a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, list_rows
from perfcast.inference.reference_data import ReferenceData
from perfcast.schema.table import Kind, Role, Tag

MAX_RESULTS = 5
"""Results that are listed by their ids, the newest first; more are only counted."""

_TOLERANCE = 1e-6
"""Relative difference of two numbers that counts as none: units are converted."""


@dataclass(frozen=True)
class PublishedResult:
    """One published result of the machine. Units: `score` that of the target."""

    result: str
    score: float
    published: str


@dataclass(frozen=True)
class PublishedGroup:
    """Published results of the machine with one compiler in one year (None without dates)."""

    setup: str
    year: int | None
    count: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class PublishedScores:
    """Published results of exactly the described machine: their number, range and median.

    `groups` are by compiler and year, the newest first; `results` has the newest results with their ids. Units: those
    of the target.
    """

    count: int
    low: float
    median: float
    high: float
    groups: tuple[PublishedGroup, ...] = ()
    results: tuple[PublishedResult, ...] = ()


class PublishedIndex:
    """Index of measured results by task and machine: CPU model, chips and whatever else is tagged IDENTITY.

    Args: `setup_columns` name the compiler; results are summarized by them and by year.
    """

    def __init__(self, reference_data: ReferenceData, setup_columns: tuple[str, ...]) -> None:
        measured = reference_data.measured
        self._measured, self._setup = measured, list(setup_columns)
        self._keys = [measured.column_of(Tag.TASK), *measured.select(tag=Tag.IDENTITY)]
        groups = measured.frame.groupby(self._keys, observed=True).indices
        self._rows: dict[Any, np.ndarray] = {key: np.asarray(rows) for key, rows in groups.items()}
        self._matched = [
            column.name
            for column in measured.columns
            if column.role in (Role.FEATURE, Role.KEY)
            and column.kind in (Kind.NUMERICAL, Kind.CATEGORICAL)
            and column.name not in self._keys
        ]
        self._numerical = {column.name for column in measured.columns if column.kind is Kind.NUMERICAL}
        self._cells: dict[str, np.ndarray] = {}
        self._summarize = lru_cache(maxsize=4096)(self._summarize_rows)

    def find_rows(self, machines: Cells, given: np.ndarray, known: np.ndarray) -> list[tuple[int, ...]]:
        """Return the measured rows of every machine that are exactly this machine.

        Args: `given` and `known` are flags of all cells, (n, columns) bool: those that the user gave, and those that
        are not assumed. The CPU model and the number of chips must be known. A result also has every other given value,
        or none in that column.
        """
        place_of = {name: place for place, name in enumerate(machines)}
        keys = list_rows(machines, self._keys)
        columns = [(name, place_of[name]) for name in self._matched if name in place_of]
        named = [(name, at) for name, at in columns if given[:, at].any()]
        exact = np.asarray(known[:, [place_of[name] for name in self._keys]].all(axis=1))
        matches: list[tuple[int, ...]] = []
        for row, key in enumerate(keys):
            rows = self._rows.get(key) if exact[row] else None
            if rows is not None:
                for name, at in named:
                    if given[row, at] and len(rows):
                        rows = rows[self._agree(name, machines[name][row], rows)]
            matches.append(() if rows is None else tuple(rows.tolist()))
        return matches

    def summarize(self, rows: tuple[int, ...], target: str) -> PublishedScores | None:
        """Return the published scores of measured rows, None where there is none."""
        return self._summarize(rows, target) if rows else None

    def _agree(self, name: str, given: Any, rows: np.ndarray) -> np.ndarray:
        values = self._read_cells(name)[rows]
        if name in self._numerical:
            return np.asarray((np.abs(values - given) <= _TOLERANCE * abs(given)) | np.isnan(values))
        return np.asarray((values == given) | (values == None))  # noqa: E711  (element by element)

    def _read_cells(self, name: str) -> np.ndarray:
        """Return the cells of a measured column: float, else objects with None where a cell is missing."""
        if name not in self._cells:
            values = self._measured.frame[name]
            plain = values.astype(object).where(values.notna(), None)
            self._cells[name] = values.to_numpy(dtype=float) if name in self._numerical else plain.to_numpy()
        return self._cells[name]

    def _summarize_rows(self, rows: tuple[int, ...], target: str) -> PublishedScores | None:
        places = np.array(rows)
        scores = self._read_cells(target)[places]
        places, scores = places[~np.isnan(scores)], scores[~np.isnan(scores)]
        if not len(places):
            return None
        months, years, setups = self._labels
        ids = self._measured.frame[self._measured.column_of(Tag.ROW)]
        ages = np.where(np.isnat(months[places]), np.iinfo(np.int64).max, -months[places].astype(np.int64))
        newest = places[np.argsort(ages, kind="stable")[:MAX_RESULTS]]
        score_by_row = dict(zip(places.tolist(), scores.tolist(), strict=True))
        groups: dict[tuple[int, str], list[float]] = {}
        for row, score in score_by_row.items():
            groups.setdefault((int(years[row]), str(setups[row])), []).append(score)
        return PublishedScores(
            *_summary(scores),
            groups=tuple(
                PublishedGroup(setup, year or None, *_summary(np.array(groups[year, setup])))
                for year, setup in sorted(groups, reverse=True)
            ),
            results=tuple(
                PublishedResult(
                    str(ids.iloc[row]),
                    score_by_row[row],
                    "" if np.isnat(months[row]) else str(months[row].astype("datetime64[M]")),
                )
                for row in newest.tolist()
            ),
        )

    @cached_property
    def _labels(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return month, year (0 without a date) and compiler of every measured row."""
        frame, times = self._measured.frame, self._measured.select(tag=Tag.TIME)
        when = frame[times[0]] if times else pd.Series(pd.NaT, frame.index, dtype="datetime64[us]")
        setups = pd.Series("", frame.index)
        for name in self._setup:
            setups = (setups + " " + frame[name].astype("object").fillna("").astype("str")).str.strip()
        years = when.dt.year.fillna(0).to_numpy(dtype=int)
        return when.to_numpy(dtype="datetime64[us]"), years, setups.to_numpy(dtype=object)


def _summary(scores: np.ndarray) -> tuple[int, float, float, float]:
    """Return number, lowest, median and highest score."""
    return len(scores), float(scores.min()), float(np.median(scores)), float(scores.max())
