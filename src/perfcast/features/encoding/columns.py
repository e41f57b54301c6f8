"""Read declared columns of a frame as plain arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from perfcast.schema.table import Column, Kind, Role, Tag


def feature_columns(columns: Iterable[Column], *, task: bool = False) -> tuple[Column, ...]:
    """Return the FEATURE columns that become numbers, sorted by name; text columns are left out.

    With `task`, categorical TASK columns are among them whatever their role: one model then serves all tasks.
    """
    used = [
        column
        for column in columns
        if column.role is Role.FEATURE or (task and Tag.TASK in column.tags and column.role is not Role.TARGET)
    ]
    return tuple(sorted((column for column in used if column.kind is not Kind.TEXT), key=lambda column: column.name))


def numbers(frame: pd.DataFrame, column: Column) -> np.ndarray:
    """Return a numerical column, or a date column as decimal years; missing and infinite values are NaN.

    Shapes: (n,) float64. A decimal year is 1970 plus the days since 1970-01-01 over 365.2425.
    """
    series = frame[column.name]
    if column.kind is Kind.DATE:
        days = pd.to_datetime(series) - pd.Timestamp("1970-01-01")
        values = 1970.0 + days.to_numpy(dtype="timedelta64[s]").astype(float) / (86400.0 * 365.2425)
        values[series.isna().to_numpy()] = np.nan
    else:
        values = pd.to_numeric(series).to_numpy(dtype=float, na_value=np.nan).copy()
    values[~np.isfinite(values)] = np.nan
    return values


def coded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with its texts as pandas categories: each is looked up once, whatever the number of readers."""
    return frame.astype(dict.fromkeys(frame.select_dtypes(["object", "string"]), "category"))


def distinct_labels(frame: pd.DataFrame, column: Column) -> tuple[np.ndarray, list[str]]:
    """Return the distinct values of a categorical column as sorted strings, and which of them every row has.

    Shapes: (n,) int, -1 where the value is missing or empty; (distinct,).
    """
    series = frame[column.name]
    if isinstance(series.dtype, pd.CategoricalDtype):
        positions, values = series.cat.codes.to_numpy(), series.cat.categories
    else:
        positions, values = pd.factorize(series.astype(object))
    # Few distinct values are in many rows: each is converted to text once.
    texts = [str(value) for value in values]
    distinct = sorted(set(texts) - {""})
    order = {text: index for index, text in enumerate(distinct)}
    ranks = np.array([*(order.get(text, -1) for text in texts), -1], dtype=np.int64)
    return ranks[positions], distinct


def labels(frame: pd.DataFrame, column: Column) -> np.ndarray:
    """Return a categorical column as strings; missing and empty values are None. Shapes: (n,) object."""
    positions, texts = distinct_labels(frame, column)
    values: np.ndarray = np.array([*texts, None], dtype=object)[positions]
    return values


def codes(frame: pd.DataFrame, column: Column, vocabulary: Iterable[str]) -> np.ndarray:
    """Return the position of each row's label in the vocabulary; -1: missing, -2: unknown. Shapes: (n,) int64."""
    order = {value: index for index, value in enumerate(vocabulary)}
    positions, texts = distinct_labels(frame, column)
    ranks: np.ndarray = np.array([*(order.get(text, -2) for text in texts), -1], dtype=np.int64)[positions]
    return ranks


def fit_vocabulary(values: np.ndarray, min_count: int) -> tuple[list[str], bool]:
    """Return the labels that occur at least `min_count` times, sorted, and whether rarer ones exist."""
    present = [value for value in values if value is not None]
    counts = pd.Series(present, dtype=object).value_counts()
    vocabulary = sorted(str(value) for value, count in counts.items() if count >= min_count)
    return vocabulary, len(vocabulary) < len(counts)
