"""Published results of exactly the described machine: the measured answer that stands before a prediction."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

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
            column
            for column in measured.columns
            if column.role in (Role.FEATURE, Role.KEY)
            and column.kind in (Kind.NUMERICAL, Kind.CATEGORICAL)
            and column.name not in self._keys
        ]
        self._summarize = lru_cache(maxsize=4096)(self._summarize_rows)

    def find(self, machine: pd.Series, given: Set[str], known: Set[str], target: str) -> PublishedScores | None:
        """Return the published scores of a machine, None where there is none.

        Args: `given` are the columns that the user gave, `known` those that are not assumed. The CPU model and the
        number of chips must be known. A result also has every other given value, or none in that column.
        """
        if not set(self._keys) <= known:
            return None
        rows = self._rows.get(tuple(machine[name] for name in self._keys))
        if rows is None:
            return None
        for column in self._matched:
            if column.name in given:
                rows = rows[self._agree(column.name, column.kind, machine[column.name], rows)]
        return self._summarize(tuple(rows.tolist()), target) if len(rows) else None

    def _agree(self, name: str, kind: Kind, given: Any, rows: np.ndarray) -> np.ndarray:
        values = self._measured.frame[name].iloc[rows]
        if kind is Kind.NUMERICAL:
            equal = np.isclose(values.to_numpy(dtype=float), float(given), rtol=_TOLERANCE, atol=0.0)
        else:
            equal = (values.astype(object) == given).to_numpy(dtype=bool)
        return np.asarray(equal | values.isna().to_numpy())

    def _summarize_rows(self, rows: tuple[int, ...], target: str) -> PublishedScores | None:
        frame = self._measured.frame.iloc[list(rows)]
        frame = frame[frame[target].notna()]
        if frame.empty:
            return None
        times = self._measured.select(tag=Tag.TIME)
        when = frame[times[0]] if times else pd.Series(pd.NaT, frame.index)
        newest = frame.assign(_when=when).sort_values("_when", ascending=False, kind="stable").head(MAX_RESULTS)
        names = frame[self._setup].astype("str").fillna("").agg(" ".join, axis=1).str.strip() if self._setup else ""
        labels = pd.DataFrame({"setup": names, "year": when.dt.year, "score": frame[target]}, index=frame.index)
        groups = labels.groupby(["year", "setup"], dropna=False)["score"].agg(["size", "min", "median", "max"])
        ids = self._measured.column_of(Tag.ROW)
        return PublishedScores(
            **_summary(frame[target]),
            groups=tuple(
                PublishedGroup(
                    str(line["setup"]), None if pd.isna(line["year"]) else int(line["year"]), *_numbers(line)
                )
                for _, line in groups.sort_index(ascending=False).reset_index().iterrows()
            ),
            results=tuple(
                PublishedResult(str(line[ids]), float(line[target]), "" if pd.isna(month) else f"{month:%Y-%m}")
                for (_, line), month in zip(newest.iterrows(), newest["_when"], strict=True)
            ),
        )


def _summary(scores: pd.Series) -> Mapping[str, Any]:
    return {
        "count": len(scores),
        "low": float(scores.min()),
        "median": float(scores.median()),
        "high": float(scores.max()),
    }


def _numbers(line: pd.Series) -> tuple[int, float, float, float]:
    return int(line["size"]), float(line["min"]), float(line["median"]), float(line["max"])
