"""Arithmetic and declarations shared by the feature modules: missing stays missing, nothing becomes infinite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from perfcast.schema.table import Column, Kind, Role, Table, Tag

_DIGITS = 10
_LOG10_2 = 0.30103
_MAX_DECIMALS = 40
_POWERS_OF_TEN = np.array([float(f"1e{power}") for power in range(-_MAX_DECIMALS, _MAX_DECIMALS + 1)])

_VERSION = r"^\D*(\d{1,4})(?:\.(\d{1,3})(?!\d)|(?!\.?\d))"


def require(table: Table, names: Iterable[str]) -> pd.DataFrame:
    """Return the frame of a table. Raises ValueError when it lacks a column that a feature module reads."""
    missing = [name for name in names if name not in table.frame.columns]
    if missing:
        raise ValueError(f"dataset {table.dataset!r} lacks columns that its features need: {', '.join(missing)}")
    return table.frame


def feature(  # noqa: PLR0917 - a declaration is written in the order of Column's fields
    name: str,
    group: str,
    unit: str,
    meaning: str,
    low: float | None = None,
    high: float | None = None,
    *,
    tags: Sequence[Tag] = (),
) -> Column:
    """Declare a derived numerical feature."""
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, low, high, tuple(tags))


def append(table: Table, columns: Iterable[Column], values: Mapping[str, pd.Series] | pd.DataFrame) -> Table:
    """Append derived columns with their values by name, rounded; a value that is not finite becomes missing."""
    return table.with_columns((column, round_digits(finite(values[column.name]))) for column in columns)


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


def append_logs(table: Table, names: Iterable[str]) -> Table:
    """Append the natural logarithm log_<name> of named columns: differences of logarithms are ratios of quantities."""
    by_name = {column.name: column for column in table.columns}
    columns, values = [], {}
    for column in map(by_name.__getitem__, names):
        unit = f"ln({column.unit})" if column.unit else "ln"
        columns.append(feature(f"log_{column.name}", column.group, unit, f"natural logarithm of {column.name}"))
        values[f"log_{column.name}"] = log(table.frame[column.name])
    return append(table, columns, values)


def append_cache_level(table: Table, shares: Mapping[str, pd.Series], content: str) -> Table:
    """Append `fits_in`, the smallest cache level that holds the content, missing where a size is unknown.

    `shares` are sizes of the content over those of the levels l3, l2 and l1d, in this order.
    """
    level = pd.Series("memory", index=table.frame.index, dtype="str")
    known = pd.Series(True, index=table.frame.index)
    for name, share in shares.items():
        level = level.mask(share <= 1, name)
        known &= share.notna()
    meaning = f"smallest cache level that holds {content}"
    column = Column("fits_in", Kind.CATEGORICAL, Role.FEATURE, "machine", meaning=meaning, tags=(Tag.SLICE,))
    return table.with_columns([(column, level.where(known))])


def round_digits(values: pd.Series) -> pd.Series:
    """Round to ten or eleven significant digits, so that a table has the same bytes on every processor.

    The last bit of a logarithm depends on the vector unit that computed it. The steps here do not: each of them is
    exact or rounded as IEEE 754 says.
    """
    numbers = values.to_numpy()
    _, exponents = np.frexp(np.nan_to_num(numbers))
    decimals = _DIGITS - 1 - np.floor((exponents - 1) * _LOG10_2).astype(int)
    scale = _POWERS_OF_TEN[np.clip(decimals, -_MAX_DECIMALS, _MAX_DECIMALS) + _MAX_DECIMALS]
    return pd.Series(np.rint(numbers * scale) / scale, index=values.index, name=values.name)


def finite(values: pd.Series) -> pd.Series:
    """Return `values` as float64 with infinities made missing."""
    numbers = values.to_numpy(dtype="float64", na_value=np.nan)
    return pd.Series(np.where(np.isfinite(numbers), numbers, np.nan), index=values.index, name=values.name)


def ratio(numerator: pd.Series, denominator: pd.Series) -> pd.Series:
    """Divide; a denominator that is not positive gives a missing value."""
    return numerator / denominator.where(denominator > 0)


def log(values: pd.Series) -> pd.Series:
    """Take the natural logarithm; a value that is not positive gives a missing one."""
    return pd.Series(np.log(finite(values).where(values > 0)), index=values.index)


def is_true(condition: pd.Series, known: pd.Series) -> pd.Series:
    """Return 1 where a condition holds and 0 where it does not; missing where `known` is missing."""
    return condition.astype("float64").where(known.notna())


def decimal_year(dates: pd.Series) -> pd.Series:
    """Return dates as decimal years, at the resolution of a month: 2021-04 is 2021.25."""
    return pd.Series(dates.dt.year + (dates.dt.month - 1) / 12, index=dates.index)


def version_number(text: pd.Series) -> pd.Series:
    """Return a dotted version as an ordered number, major + minor / 1000: "5.14.21" is 5.014 and "5.3" is 5.003."""
    parts = text.astype("str").where(text.notna()).str.extract(_VERSION)
    major, minor = (pd.to_numeric(parts[column]).astype("float64") for column in (0, 1))
    return major + minor.fillna(0) / 1000
