"""Read declared columns of a frame as plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from perfcast.schema.table import Column, Kind, Role, Tag


def feature_columns(columns: Iterable[Column], *, task: bool = False) -> tuple[Column, ...]:
    """Return the FEATURE columns that become numbers, sorted by name; texts and sequences are left out.

    With `task`, categorical TASK columns are among them whatever their role: one model then serves all tasks.
    """
    used = [
        column
        for column in columns
        if column.role is Role.FEATURE or (task and Tag.TASK in column.tags and column.role is not Role.TARGET)
    ]
    encoded = (column for column in used if column.kind not in (Kind.TEXT, Kind.SEQUENCE))
    return tuple(sorted(encoded, key=lambda column: column.name))


def numbers(frame: pd.DataFrame, column: Column) -> np.ndarray:
    """Return a numerical column, or a date column as decimal years; missing and infinite values are NaN.

    Shapes: (n,) float64. A decimal year is 1970 plus the days since 1970-01-01 over 365.2425.
    """
    read = frame[column.name]
    if column.kind is Kind.DATE or read.dtype != np.float64:
        return number_matrix(frame, [column])[:, 0]
    values = read.to_numpy(copy=True)  # without a frame of one column, which takes longer than a prediction of few rows
    values[~np.isfinite(values)] = np.nan
    return values


def named_numbers(frame: pd.DataFrame, columns: Iterable[Column], name: str) -> np.ndarray:
    """Return a column by its name as `numbers` does, NaN where the frame has none of this name, (n,)."""
    column = next((column for column in columns if column.name == name and name in frame), None)
    return np.full(len(frame), np.nan) if column is None else numbers(frame, column)


def finite_range(values: np.ndarray) -> list[float]:
    """Return the smallest and the largest finite value, nothing without any."""
    known = values[np.isfinite(values)]
    return [float(known.min()), float(known.max())] if len(known) else []


def number_matrix(frame: pd.DataFrame, columns: Sequence[Column]) -> np.ndarray:
    """Return numerical and date columns as `numbers` does, (n, columns) float64; all are read at once."""
    values = np.empty((len(frame), len(columns)), order="F")
    dates = [column.kind is Kind.DATE for column in columns]
    plain = [column.name for column, is_date in zip(columns, dates, strict=True) if not is_date]
    read = frame[plain]
    if not all(dtype == np.float64 for dtype in read.dtypes):
        read = read.apply(pd.to_numeric)
    values[:, ~np.array(dates, dtype=bool)] = read.to_numpy(dtype=float, na_value=np.nan)
    for place in np.flatnonzero(dates).tolist():
        days = (pd.to_datetime(frame[columns[place].name]) - pd.Timestamp("1970-01-01")).to_numpy()
        years = 1970.0 + days.astype("timedelta64[s]").astype(float) / (86400.0 * 365.2425)
        values[:, place] = np.where(np.isnat(days), np.nan, years)
    values[~np.isfinite(values)] = np.nan
    return values


def coded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with its texts as pandas categories: each is looked up once, whatever the number of readers."""
    kinds = zip(frame.columns, frame.dtypes.array, strict=True)
    texts = [name for name, dtype in kinds if dtype.kind == "O" and dtype in ("object", "string")]
    # `astype` of a mapping takes every column apart, which a frame of a thousand columns notices
    return frame.assign(**{name: frame[name].astype("category") for name in texts}) if texts else frame


def _texts_of(frame: pd.DataFrame, column: Column) -> tuple[np.ndarray, list[str]]:
    """Return texts of a categorical column, not all of them different, and which one every row has, -1 for none."""
    values = frame[column.name].array
    if isinstance(values, pd.Categorical):
        positions = values.codes
        distinct = np.asarray(values.categories, dtype=object)
    else:
        positions, distinct = pd.factorize(np.asarray(values, dtype=object))
    # Few distinct values are in many rows: each is converted to text once.
    return positions, list(map(str, distinct.tolist()))


def distinct_labels(frame: pd.DataFrame, column: Column) -> tuple[np.ndarray, list[str]]:
    """Return the distinct values of a categorical column as sorted strings, and which of them every row has.

    Shapes: (n,) int, -1 where the value is missing or empty; (distinct,).
    """
    positions, texts = _texts_of(frame, column)
    distinct = sorted(set(texts) - {""})
    order = {text: index for index, text in enumerate(distinct)}
    ranks = np.array([*(order.get(text, -1) for text in texts), -1], dtype=np.int64)
    return ranks[positions], distinct


def labels(frame: pd.DataFrame, column: Column) -> np.ndarray:
    """Return a categorical column as strings; missing and empty values are None. Shapes: (n,) object."""
    return map_labels(frame, column, str)


def map_labels(frame: pd.DataFrame, column: Column, function: Callable[[str], Any], missing: Any = None) -> np.ndarray:
    """Return a function of every row's text, computed once for each; `missing` for no or an empty text.

    Shapes: (n,) object.
    """
    positions, texts = _texts_of(frame, column)
    mapped = np.empty(len(texts) + 1, dtype=object)
    mapped[:] = [*(function(text) if text else missing for text in texts), missing]
    return np.asarray(mapped[positions])


def codes(frame: pd.DataFrame, column: Column, order: Mapping[str, int]) -> np.ndarray:
    """Return the number of each row's label by `order`; -1: missing, -2: unknown. Shapes: (n,) int64."""
    positions, texts = _texts_of(frame, column)
    ranks = np.array([*(order.get(text, -2) if text else -1 for text in texts), -1], dtype=np.int64)
    return np.asarray(ranks[positions])


def number_values(vocabulary: Iterable[str]) -> dict[str, int]:
    """Return the position of every value."""
    return {value: index for index, value in enumerate(vocabulary)}


def fit_vocabulary(values: np.ndarray, min_count: int) -> tuple[list[str], bool]:
    """Return the labels that occur at least `min_count` times, sorted, and whether rarer ones exist."""
    present = [value for value in values if value is not None]
    counts = pd.Series(present, dtype=object).value_counts()
    vocabulary = sorted(str(value) for value, count in counts.items() if count >= min_count)
    return vocabulary, len(vocabulary) < len(counts)
