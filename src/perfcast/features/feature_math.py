"""Arithmetic and declarations shared by the feature modules: missing stays missing, nothing becomes infinite.

Feature modules compute with NumPy arrays: a described machine is one row, for which an operation of pandas takes a
hundred times as long. Missing is NaN, NaT, or no string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from perfcast.schema.table import Column, Kind, Role, Table, Tag

_DIGITS = 10
_LOG10_2 = 0.30103
_MAX_DECIMALS = 40
_POWERS_OF_TEN = np.array([float(f"1e{power}") for power in range(-_MAX_DECIMALS, _MAX_DECIMALS + 1)])

_VERSION = re.compile(r"^\D*(\d{1,4})(?:\.(\d{1,3})(?!\d)|(?!\.?\d))")

Values = np.ndarray | pd.Series
"""Values of a column, (n,)."""
AnyValues = TypeVar("AnyValues", np.ndarray, pd.Series)


def require(table: Table, names: Iterable[str]) -> pd.DataFrame:
    """Return the frame of a table. Raises ValueError when it lacks a column that a feature module reads."""
    missing = [name for name in names if name not in table.frame.columns]
    if missing:
        raise ValueError(f"dataset {table.dataset!r} lacks columns that its features need: {', '.join(missing)}")
    return table.frame


def arrays(table: Table, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return columns of a table as arrays: float64, datetime64, or objects for texts. Raises: see `require`."""
    frame = require(table, names)
    return {name: _read_array(frame[name]) for name in names}


def _read_array(values: pd.Series) -> np.ndarray:
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return np.asarray(values)
    texts: np.ndarray = np.asarray([*values.dtype.categories, None], dtype=object)
    return np.asarray(texts[values.array.codes])


def feature(  # noqa: PLR0917 - a declaration is written in the order of Column's fields
    name: str,
    group: str,
    unit: str,
    meaning: str,
    low: float | None = None,
    high: float | None = None,
) -> Column:
    """Declare a derived numerical feature."""
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, low, high)


def append(
    table: Table,
    columns: Iterable[Column],
    values: Mapping[str, Values] | pd.DataFrame,
    *,
    logs: Sequence[str] = (),
) -> Table:
    """Append derived columns with their values by name, rounded; a value that is not finite becomes missing.

    `logs` are columns, also derived ones, whose natural logarithm is appended as log_<name>: differences of logarithms
    are ratios of quantities.
    """
    declared = list(columns)
    stacked = np.empty((len(declared) + len(logs), len(table.frame)))
    for place, column in enumerate(declared):
        stacked[place] = finite(values[column.name])
    stacked[: len(declared)] = round_digits(stacked[: len(declared)])
    by_name = {column.name: column for column in (*table.columns, *declared)}
    places = {column.name: place for place, column in enumerate(declared)}
    for place, name in enumerate(logs, len(declared)):
        stacked[place] = log(stacked[places[name]] if name in places else table.frame[name])
    stacked[len(declared) :] = round_digits(stacked[len(declared) :])
    return table.with_numbers([*declared, *(_log_column(by_name[name]) for name in logs)], stacked)


def derive_distinct(
    frame: pd.DataFrame,
    names: Sequence[str],
    columns: Iterable[Column],
    derive_values: Callable[[tuple[object, ...]], Mapping[str, float | str]],
) -> pd.DataFrame:
    """Return the values of `columns` for every row, derived once for each distinct combination of the named columns."""
    distinct = frame[list(names)].drop_duplicates()
    rows = [derive_values(tuple(row)) for row in distinct.itertuples(index=False)]
    derived = pd.DataFrame(rows, columns=[column.name for column in columns])
    keyed = pd.concat([distinct.reset_index(drop=True), derived], axis=1)
    return frame[list(names)].merge(keyed, on=list(names), how="left").set_axis(frame.index)


def append_logs(table: Table, names: Sequence[str]) -> Table:
    """Append the natural logarithm log_<name> of named columns, see `append`."""
    return append(table, (), {}, logs=names)


def _log_column(column: Column) -> Column:
    unit = f"ln({column.unit})" if column.unit else "ln"
    return feature(f"log_{column.name}", column.group, unit, f"natural logarithm of {column.name}")


def append_cache_level(table: Table, shares: Mapping[str, Values], content: str) -> Table:
    """Append `fits_in`, the smallest cache level that holds the content, missing where a size is unknown.

    `shares` are sizes of the content over those of the levels l3, l2 and l1d, in this order.
    """
    level = np.full(len(table.frame), "memory", dtype=object)
    known = np.full(len(table.frame), True)
    for name, share in shares.items():
        level[share <= 1] = name
        known &= ~np.isnan(share)
    meaning = f"smallest cache level that holds {content}"
    column = Column("fits_in", Kind.CATEGORICAL, Role.FEATURE, "machine", meaning=meaning, tags=(Tag.SLICE,))
    return table.with_columns([(column, np.where(known, level, np.array(None)))])


def round_digits(numbers: np.ndarray, digits: int = _DIGITS) -> np.ndarray:
    """Round to significant digits, or to one more, so that a table has the same bytes on every processor.

    The last bit of a logarithm depends on the vector unit that computed it. The steps here do not: each of them is
    exact or rounded as IEEE 754 says.
    """
    _, exponents = np.frexp(np.nan_to_num(numbers))
    decimals = digits - 1 - np.floor((exponents - 1) * _LOG10_2).astype(int)
    scale = _POWERS_OF_TEN[np.clip(decimals, -_MAX_DECIMALS, _MAX_DECIMALS) + _MAX_DECIMALS]
    return np.asarray(np.rint(numbers * scale) / scale)


def finite(values: Values) -> np.ndarray:
    """Return `values` as float64 with infinities made missing."""
    if isinstance(values, pd.Series):
        values = values.to_numpy(dtype="float64", na_value=np.nan)
    numbers = np.asarray(values, dtype="float64")
    return np.where(np.isfinite(numbers), numbers, np.nan)


def positive(values: Values) -> np.ndarray:
    """Return `values` with those that are not positive made missing."""
    return np.where(values > 0, values, np.nan)


def ratio(numerator: AnyValues, denominator: AnyValues) -> AnyValues:
    """Divide; a denominator that is not positive gives a missing value."""
    quotient: AnyValues = numerator / positive(denominator)
    return quotient


def log(values: Values) -> np.ndarray:
    """Take the natural logarithm; a value that is not positive gives a missing one."""
    return np.asarray(np.log(positive(finite(values))))


def is_true(condition: Values, known: Values) -> np.ndarray:
    """Return 1 where a condition holds and 0 where it does not; missing where `known` is missing."""
    return np.where(np.isnan(known), np.nan, condition)


def decimal_year(dates: np.ndarray) -> np.ndarray:
    """Return dates as decimal years, at the resolution of a month: 2021-04 is 2021.25."""
    months = dates.astype("datetime64[M]")
    since = months.astype("int64")  # since 1970-01
    return np.where(np.isnat(months), np.nan, 1970 + since // 12 + (since % 12) / 12)


def map_distinct(function: Callable[..., Any], *texts: np.ndarray) -> np.ndarray:
    """Return a function of every row's texts, (n,) object, computed once for distinct ones; None where one is missing.

    Shapes: every array (n,) object.
    """
    rows = list(zip(*(column.tolist() for column in texts), strict=True))
    by_row = {row: function(*row) if all(isinstance(text, str) for text in row) else None for row in set(rows)}
    mapped = np.empty(len(rows), dtype=object)
    mapped[:] = [by_row[row] for row in rows]
    return mapped


def version_number(texts: np.ndarray) -> np.ndarray:
    """Return a dotted version as an ordered number, major + minor / 1000: "5.14.21" is 5.014 and "5.3" is 5.003."""
    return map_distinct(_version_number, texts).astype("float64")


def _version_number(text: str) -> float:
    match = _VERSION.match(text)
    return float(match[1]) + float(match[2] or 0) / 1000 if match else np.nan
