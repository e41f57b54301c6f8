"""Arithmetic and declarations shared by the feature modules: missing stays missing, nothing becomes infinite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from perfcast.schema.table import Column, Kind, Role, Table, Tag

Pair = tuple[Column, pd.Series]

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


def append(table: Table, pairs: Iterable[Pair]) -> Table:
    """Append derived columns, `settled`; a value that is not finite becomes missing."""
    return table.with_columns((column, settled(finite(values))) for column, values in pairs)


def settled(values: pd.Series) -> pd.Series:
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


def declared(table: Table, names: Iterable[str]) -> list[Pair]:
    """Return columns of a table with their declarations, in the given order."""
    by_name = {column.name: column for column in table.columns}
    return [(by_name[name], table.frame[name]) for name in names]


def logs(pairs: Iterable[Pair]) -> list[Pair]:
    """Make the column log_<name> of each given column: differences of logarithms are ratios of the quantity."""
    made = []
    for column, values in pairs:
        unit = f"ln({column.unit})" if column.unit else "ln"
        meaning = f"natural logarithm of {column.name}"
        made.append((feature(f"log_{column.name}", column.group, unit, meaning), log(values)))
    return made


def decimal_year(dates: pd.Series) -> pd.Series:
    """Return dates as decimal years, at the resolution of a month: 2021-04 is 2021.25."""
    return pd.Series(dates.dt.year + (dates.dt.month - 1) / 12, index=dates.index)


def version_number(text: pd.Series) -> pd.Series:
    """Return a dotted version as an ordered number, major + minor / 1000: "5.14.21" is 5.014 and "5.3" is 5.003."""
    parts = text.astype("str").where(text.notna()).str.extract(_VERSION)
    major, minor = (pd.to_numeric(parts[column]).astype("float64") for column in (0, 1))
    return major + minor.fillna(0) / 1000
