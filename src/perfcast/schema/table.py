"""Self-describing table: column declarations that travel with the data in Parquet metadata.

Every stage after standardization reads and writes `Table`. Later stages select columns by role, semantic type, group
and tag, never by name, unless the configuration of the dataset states the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from perfcast.schema.sequences import from_matrix, is_sequence, to_matrix
from perfcast.utils.errors import UserError


class Kind(StrEnum):
    """Semantic type of a column. pandas types: float64, str, str, datetime64[us]; missing is NaN or NaT.

    A cell of a SEQUENCE has a fixed number of numbers, such as the last seconds of one metric; see
    `perfcast.schema.sequences`. Only predictors that read sequences get these columns.
    Texts may also be pandas categories of str, which take a tenth of the memory where texts repeat. Files hold plain
    texts in both cases.
    """

    NUMERICAL = "numerical"
    CATEGORICAL = "categorical"
    TEXT = "text"
    DATE = "date"
    SEQUENCE = "sequence"


TASK_KIND = "task_kind"
"""Name of a column that tells results that err alike from others, such as losses and accuracies."""

LOWER_IS_BETTER = "lower_is_better"
"""Fact of a table: true where all targets are times or costs."""

LEAVE_ONE_OUT = "leave_one_out"
"""Fact of a small table: true where splits of unseen entities hold out one at a time."""

BRIDGE = "bridge"
"""Fact of a table with estimates by the champion of another dataset: what the leakage check of them reads."""


class Role(StrEnum):
    """Use of a column. Predictors learn from FEATURE columns only."""

    FEATURE = "feature"
    TARGET = "target"
    KEY = "key"
    PROVENANCE = "provenance"


class Tag(StrEnum):
    """Meaning of a column for generic code, beyond its role.

    ROW       the unique key of a row; exactly one column
    TASK      a separate test inside the dataset (the suite); metrics are computed per task
    IDENTITY  with TASK: equal values are the same machine for the `nearest` baseline
    SCALING   a positive quantity whose power performance grows with: the terms of the `power_law` baseline
    ENTITY    the unit that unseen splits hold out and the clustered bootstrap resamples
    BLOCK     rows that must stay together in any split (submission)
    TIME      date of publication; orders forward splits
    SLICE     a column by which errors are reported (vendor, family)
    EXCLUDED  1 where the score cannot be that of its machine: metrics exclude the row
    UNUSED    1 where no split and no training uses the row
    TESTER    who ran the test of a result: published results are shown with it
    COST      an amount whose time adds to that of the row: the terms of the roofline model (operations, bytes)
    COMPONENT the time at the speed of light of a part of the row's time: the parts add up
    SLOWDOWN  measured time / COMPONENT, on the row's ENTITY: `<component>_slowdown`, read if training has the ENTITY
    WORK      the quantity that a rate counts: work / score is the time; without it a score is a time or a cost
    PARALLEL  workers that share the work of a row; scaling splits hold out higher numbers
    SETUP     software that an ENTITY runs: its rows err alike, as those of another software do
    ROUND     results that are published together, in the order of TIME: backtests predict each earlier round
    PAIR      rows equal on every PAIR column tell about each other: intervals depend on how many training has
    LEVEL     rows of one value err alike, beside those of one ENTITY: compiler, model of the system
    CONFIG    rows equal on every CONFIG column are repetitions of one configuration (noise floor)
    """

    ROW = "row"
    TASK = "task"
    IDENTITY = "identity"
    SCALING = "scaling"
    ENTITY = "entity"
    BLOCK = "block"
    TIME = "time"
    COST = "cost"
    COMPONENT = "component"
    SLOWDOWN = "slowdown"
    WORK = "work"
    PARALLEL = "parallel"
    SLICE = "slice"
    SETUP = "setup"
    PAIR = "pair"
    ROUND = "round"
    LEVEL = "level"
    CONFIG = "config"
    EXCLUDED = "excluded"
    TESTER = "tester"
    UNUSED = "unused"


_COLUMNS_OF_PREDICTIONS = ("row", "task", "entity", "fold", "seed", "target", "measured", "predicted", "backtest")


@dataclass(frozen=True)
class Column:
    """Declaration of one column: name, type, role, group, unit, meaning, bounds and tags.

    Units: `unit` is the unit of the stored numbers ("MHz", "GiB", "MT/s", "" for counts and ratios).
    `low` and `high` bound plausible values, inclusive; standardization quarantines rows with a value outside.
    """

    name: str
    kind: Kind
    role: Role
    group: str
    unit: str = ""
    meaning: str = ""
    low: float | None = None
    high: float | None = None
    tags: tuple[Tag, ...] = ()

    def __post_init__(self) -> None:
        if self.group in _COLUMNS_OF_PREDICTIONS:
            requirement = f"the group of the column {self.name!r} must be no column of predictions"
            raise UserError(requirement, f"it is {self.group!r}", "name the group otherwise")
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "role", Role(self.role))
        object.__setattr__(self, "tags", tuple(sorted(Tag(tag) for tag in self.tags)))


@dataclass(frozen=True)
class Table:
    """Tidy frame with its column declarations.

    Shapes: `frame` has one row per measured result and exactly the declared columns, in declared order.
    """

    dataset: str
    frame: pd.DataFrame
    columns: tuple[Column, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def select(
        self, *, role: Role | None = None, kind: Kind | None = None, group: str | None = None, tag: Tag | None = None
    ) -> list[str]:
        """Return the names of the columns that match every given condition, in declared order."""
        return [column.name for column in select(self.columns, role=role, kind=kind, group=group, tag=tag)]

    def column_of(self, tag: Tag) -> str:
        """Return the name of the only column with `tag`. Raises: UserError when there is not exactly one."""
        names = self._names_by_tag.get(tag, [])
        if len(names) != 1:
            raise UserError(
                f"the dataset {self.dataset!r} must have exactly one column with Tag.{tag.name}",
                f"it has {', '.join(names) or 'none'}",
                "correct the tags of the columns in the module that `_target_` of its conf/dataset file names",
            )
        return names[0]

    @cached_property
    def _names_by_tag(self) -> dict[Tag, list[str]]:
        names: dict[Tag, list[str]] = {}
        for column in self.columns:
            for tag in column.tags:
                names.setdefault(tag, []).append(column.name)
        return names

    def with_columns(self, added: Iterable[tuple[Column, pd.Series | np.ndarray]]) -> Table:
        """Return a table with derived columns appended. Raises ValueError when a name exists already."""
        typed = [(column, as_declared(pd.Series(values, self.frame.index), column)) for column, values in added]
        columns = [column for column, _ in typed]
        return self._append(columns, pd.DataFrame({column.name: values for column, values in typed}, self.frame.index))

    def with_numbers(self, columns: Sequence[Column], values: np.ndarray) -> Table:
        """Return a table with derived numerical columns appended, see `with_columns`. Shapes: values (columns, n)."""
        return self._append(columns, pd.DataFrame(values.T, self.frame.index, [column.name for column in columns]))

    def join(self, other: Table) -> Table:
        """Return a table with the columns and facts of another one of the same rows, in any order."""
        row = self.column_of(Tag.ROW)
        frame = other.frame.set_index(row).loc[self.frame[row]].set_axis(self.frame.index)
        joined = self._append([column for column in other.columns if column.name != row], frame)
        return replace(joined, facts={**self.facts, **other.facts})

    def _append(self, columns: Sequence[Column], frame: pd.DataFrame) -> Table:
        have = {column.name for column in self.columns}
        for column in columns:
            if column.name in have:
                raise ValueError(f"column {column.name!r} exists already in {self.dataset!r}")
            have.add(column.name)
        return replace(self, frame=pd.concat([self.frame, frame], axis=1), columns=(*self.columns, *columns))


def select(
    columns: Iterable[Column],
    *,
    role: Role | None = None,
    kind: Kind | None = None,
    group: str | None = None,
    tag: Tag | None = None,
) -> list[Column]:
    """Return the declarations that match every given condition, in the given order."""
    return [
        column
        for column in columns
        if (role is None or column.role is role)
        and (kind is None or column.kind is kind)
        and (group is None or column.group == group)
        and (tag is None or tag in column.tags)
    ]


LARGEST = 1e18
"""Largest size of a number in a table: networks compute in single precision, whose squares end at 1e38."""

_TYPES = {
    Kind.NUMERICAL: np.dtype("float64"),
    Kind.DATE: np.dtype("datetime64[us]"),
    Kind.CATEGORICAL: pd.Series([], dtype="str").dtype,
    Kind.TEXT: pd.Series([], dtype="str").dtype,
}


def as_declared(values: pd.Series, column: Column) -> pd.Series:
    """Return `values` with the pandas type of the column's semantic type and the column's name."""
    typed: pd.Series
    text = column.kind in (Kind.CATEGORICAL, Kind.TEXT)
    if column.kind is Kind.SEQUENCE:
        typed = from_matrix(to_matrix(values), values.index)
    elif values.dtype == _TYPES[column.kind] or (text and _is_coded(values)):
        typed = values  # already typed: the common case
    elif column.kind is Kind.NUMERICAL:
        typed = pd.to_numeric(values).astype("float64")
    elif column.kind is Kind.DATE:
        typed = pd.to_datetime(values).astype("datetime64[us]")
    else:
        typed = values.astype("str").where(values.notna())
    return typed if typed.name == column.name else typed.rename(column.name)


def _is_coded(values: pd.Series) -> bool:
    return isinstance(values.dtype, pd.CategoricalDtype) and values.cat.categories.dtype == _TYPES[Kind.TEXT]


def build_table(
    dataset: str,
    frame: pd.DataFrame,
    columns: Sequence[Column],
    facts: dict[str, Any] | None = None,
    *,
    copy: bool = True,
) -> Table:
    """Return a Table of a frame: declared columns only, declared order, declared types, new index.

    Args:
        copy: False shares the memory of `frame`, for large frames; later steps on small frames are slower then.

    Raises:
        ValueError: The frame lacks a declared column.
    """
    missing = [column.name for column in columns if column.name not in frame.columns]
    if missing:
        raise ValueError(f"declared columns are not in the frame of {dataset!r}: {missing}")
    typed = {column.name: as_declared(frame[column.name], column) for column in columns}
    built = pd.DataFrame(typed, copy=copy).reset_index(drop=True)
    return Table(dataset, built, tuple(columns), dict(facts or {}))


def out_of_bounds(table: Table) -> pd.DataFrame:
    """Return a boolean frame: which numerical cells lie outside their column's declared bounds."""
    bad = {c.name: outside(table.frame[c.name], c) for c in select(table.columns, kind=Kind.NUMERICAL)}
    return pd.DataFrame(bad, index=table.frame.index)


def outside(values: pd.Series, column: Column) -> pd.Series:
    """Mark the values outside the declared bounds of their column, or of +-LARGEST. Missing values are inside.

    Shapes: values (n,) -> (n,) bool.
    """
    low = -LARGEST if column.low is None else column.low
    high = LARGEST if column.high is None else column.high
    marked: pd.Series = (values < low) | (values > high)
    return marked


def require_usable_numbers(frame: pd.DataFrame, columns: Iterable[Column], where: str) -> None:
    """Check that no number, in sequences too, is infinite or larger than LARGEST; missing ones are allowed.

    Raises: UserError, which names the column and the row, where `where` names the table.
    """
    numbers = (Kind.NUMERICAL, Kind.SEQUENCE)
    for name in (column.name for column in columns if column.kind in numbers and column.name in frame):
        is_list = is_sequence(frame[name].dtype)
        values = to_matrix(frame[name]) if is_list else frame[name].to_numpy(dtype="float64", na_value=np.nan)
        sizes = np.abs(values)
        if sizes.size and np.fmax.reduce(sizes, axis=None) > LARGEST:
            place = tuple(np.argwhere(sizes > LARGEST)[0].tolist())
            fact = f"{name} is {values[place]:g} in row {place[0] + 1}"
            raise UserError(f"numbers in {where} must be finite and at most {LARGEST:g}", fact, "correct or remove it")


def infer_columns(frame: pd.DataFrame, targets: Sequence[str] = ()) -> tuple[Column, ...]:
    """Declare the columns of a plain frame by their pandas types, for use in a notebook."""
    declared = []
    for name in map(str, frame.columns):
        if is_sequence(frame[name].dtype):
            kind = Kind.SEQUENCE
        elif pd.api.types.is_datetime64_any_dtype(frame[name]):
            kind = Kind.DATE
        elif pd.api.types.is_numeric_dtype(frame[name]):
            kind = Kind.NUMERICAL
        else:
            kind = Kind.CATEGORICAL
        declared.append(Column(name, kind, Role.TARGET if name in targets else Role.FEATURE, "all"))
    return tuple(declared)
