"""Cells of machines as one array per column, with the origin of every one, and the steps that fill them.

Imputation works on one machine as fast as on a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from perfcast.schema.table import Column, Kind

_MISSING = {"f": np.nan, "M": np.datetime64("NaT"), "O": None}
"""Kind of an array -> its missing value."""
UNKNOWN = -2
"""Code of a value that no row of a coded column has; -1 is that of missing cells."""


class Cells(dict[str, np.ndarray]):
    """Columns of machines by name, each an array: float64, datetime64[us], or objects for texts.

    A missing cell is NaN, NaT or None. Columns are never changed in place, so that several `Cells` share them.
    Shapes: every column (n,), `index` (n,).
    """

    def __init__(self, columns: Mapping[str, np.ndarray], index: np.ndarray) -> None:
        super().__init__(columns)
        self.index = index

    def assign(self, changed: Mapping[str, np.ndarray]) -> Self:
        """Return cells with other columns."""
        return type(self)({**self, **changed}, self.index)

    def take(self, rows: np.ndarray) -> Self:
        """Return some rows, by numbers (m,) int or flags (n,) bool."""
        return type(self)({name: values[rows] for name, values in self.items()}, self.index[rows])

    def append(self, others: Self) -> Self:
        """Return the rows of both."""
        columns = {name: np.concatenate([values, others[name]]) for name, values in self.items()}
        return type(self)(columns, np.concatenate([self.index, others.index]))

    def to_frame(self, *, coded: bool = False) -> pd.DataFrame:
        """Return a frame with the types of a table, texts as pandas categories where `coded`."""
        typed: dict[str, Any] = dict(self)
        for name, values in self.items():
            if values.dtype.kind == "O" and coded:
                # a described machine is one row, for which a dictionary is faster than pandas
                places: dict[str, int] = {}
                codes = [-1 if text is None else places.setdefault(text, len(places)) for text in values.tolist()]
                typed[name] = pd.Categorical.from_codes(codes, dtype=_category(tuple(places)), validate=False)
            elif values.dtype.kind == "O":
                typed[name] = pd.array(values, "str")
        return pd.DataFrame(typed, pd.Index(self.index))


@lru_cache(maxsize=4096)
def _category(texts: tuple[str, ...]) -> pd.CategoricalDtype:
    return pd.CategoricalDtype(pd.Index(texts, dtype=object))


def stack_cells(machines: Sequence[Mapping[str, Any]], columns: Iterable[Column]) -> Cells:
    """Return the cells of machines in every column, numbered from 0; what a machine lacks is missing."""
    known = {name for cells in machines for name in cells}
    stacked: dict[str, np.ndarray] = {}
    for column in columns:
        given = [cells.get(column.name) for cells in machines] if column.name in known else [None] * len(machines)
        listed = [None if cell is None or pd.isna(cell) else cell for cell in given]
        if column.kind in (Kind.NUMERICAL, Kind.DATE):
            dtype = float if column.kind is Kind.NUMERICAL else "datetime64[us]"
            stacked[column.name] = np.array(listed, dtype=dtype)
        else:
            stacked[column.name] = np.empty(len(listed), dtype=object)
            stacked[column.name][:] = [None if cell is None else str(cell) for cell in listed]
    return Cells(stacked, np.arange(len(machines)))


def read_column(values: pd.Series) -> np.ndarray:
    """Return a column as `Cells` holds it."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "fM":
        return np.asarray(values)
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biu":
        return values.to_numpy(dtype=float)
    if isinstance(values.dtype, pd.CategoricalDtype):
        distinct = np.array([*values.dtype.categories, None], dtype=object)
        return np.asarray(distinct[values.array.codes])
    texts = values.to_numpy(dtype=object, copy=True)
    texts[values.isna().to_numpy()] = None
    return texts


def is_missing(values: np.ndarray) -> np.ndarray:
    """Return which cells of a column are missing, (n,) bool."""
    if values.dtype.kind == "O":
        return np.asarray(values == None)  # noqa: E711  (element by element)
    return np.asarray(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values))


def mask_cells(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a column with some of its cells made missing. Shapes: values (n,), rows (n,) bool."""
    return np.where(rows, np.array([_MISSING[values.dtype.kind]], dtype=values.dtype), values)


def list_rows(cells: Mapping[str, np.ndarray], names: Sequence[str]) -> list[tuple[object, ...]]:
    """Return the cells of every row as a tuple that equals that of another row with the same cells."""
    plain = []
    for name in names:
        values = cells[name]
        if values.dtype.kind != "O":
            values = np.where(is_missing(values), np.array([None]), values.astype(object))
        plain.append(values.tolist())
    return list(zip(*plain, strict=True)) if plain else []


def fill_missing(cells: Cells, values: Mapping[str, np.ndarray]) -> Cells:
    """Fill the missing cells of columns; without a cell to fill, return the same cells."""
    filled = {}
    for name, candidates in values.items():
        if name in cells:
            missing = is_missing(cells[name])
            if missing.any() and not is_missing(candidates[missing]).all():
                filled[name] = np.where(missing, candidates, cells[name])
    return cells.assign(filled) if filled else cells


class EntityFacts:
    """Facts of entities, by name, as arrays of the kind of the columns that they fill."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.places = {name: place for place, name in enumerate(frame.index)}
        self._column = cache(self._read_column)

    def look_up(self, names: Sequence[str | None], like: Cells) -> dict[str, np.ndarray]:
        """Return the facts of entities by column of `like`, (n,) each, missing for an unlisted one."""
        places = np.array([self.places.get(name, -1) for name in names], dtype=int)
        listed = [str(name) for name in self.frame if name in like]
        return {name: self._column(name, like[name].dtype)[places] for name in listed}

    def _read_column(self, name: str, dtype: np.dtype) -> np.ndarray:
        """Return a column of facts, and a missing one at its end."""
        typed = read_column(self.frame[name].astype(object if dtype.kind == "O" else dtype))
        return np.append(typed, mask_cells(typed[:1], np.array([True])))


class Codes(NamedTuple):
    """A coded column: a comparison is one of small integers.

    Shapes: `codes` (n,) int, -1 where the cell is missing. `values` are the distinct ones, `places` their codes.
    """

    codes: np.ndarray
    values: list[Any]
    places: Mapping[Hashable, int]

    def equals(self, value: Any, rows: np.ndarray) -> np.ndarray:
        """Return whether the column is a value in some rows. Shapes: rows (n,) int -> (n,) bool."""
        return np.asarray(self.codes[rows] == self.places.get(value, UNKNOWN))


def code_column(values: pd.Series) -> Codes:
    """Return a column with its distinct values coded in the order of their first rows."""
    codes, distinct = pd.factorize(values)
    return Codes(codes.astype(np.int32), list(distinct), {value: at for at, value in enumerate(distinct)})


GIVEN, LOOKED_UP, IMPLIED, MEASURED, ASSUMED, MISSING = (
    "given",
    "looked up",
    "implied",
    "measured",
    "assumed",
    "missing",
)
ORIGINS = {
    GIVEN: "as described",
    LOOKED_UP: "a fact of the entity, from a catalog",
    MEASURED: "all measured results of the entity, or of the task, have it",
    IMPLIED: "follows from other values of the machine",
    ASSUMED: "usual: most recent measured machines of the kind have it",
    MISSING: "unknown",
}
"""Origins of a value and their meaning; see `Presentation.origin_meanings`."""
CODES = {origin: code for code, origin in enumerate(ORIGINS)}
"""Origin -> its place among ORIGINS."""


class CompletedMachines:
    """Machines with every standard column, filled in steps, with the origin of every cell.

    Args: `codes` are known origins; `concluded` is the origin whose rule nothing was filled after.
    Shapes: `codes` (n, columns) int8, the place of every cell's origin among ORIGINS; the index of `cells` is that of
    the machines, repeated by task.
    """

    def __init__(self, cells: Cells, codes: np.ndarray | None = None, concluded: str = "") -> None:
        self.cells = cells
        if codes is None:
            missing = np.column_stack([is_missing(values) for values in cells.values()])
            codes = np.where(missing, CODES[MISSING], CODES[GIVEN]).astype(np.int8)
        self.codes = codes
        self.places = {name: place for place, name in enumerate(cells)}
        self._fills, self._fills_at_conclusion = 0, {concluded: 0}

    @property
    def numbered(self) -> Cells:
        """The cells with the number of every row as its index."""
        return Cells(self.cells, np.arange(len(self.codes)))

    @property
    def frame(self) -> pd.DataFrame:
        """The cells as a frame."""
        return self.cells.to_frame()

    @property
    def origins(self) -> pd.DataFrame:
        """The origin of every cell as text."""
        names = np.array(list(ORIGINS), dtype=object)[self.codes]
        return pd.DataFrame(names, pd.Index(self.cells.index), list(self.cells), dtype=object)

    def has_origin(self, *origins: str) -> np.ndarray:
        """Return which cells have one of some origins, (n, columns) bool."""
        return np.asarray(np.isin(self.codes, [CODES[origin] for origin in origins]))

    def take(self, rows: np.ndarray) -> CompletedMachines:
        """Return some rows, by their numbers (m,) int or flags (n,) bool."""
        return CompletedMachines(self.cells.take(rows), self.codes[rows])

    def repeat(self, rows: np.ndarray) -> None:
        """Repeat rows, (m,) int of row numbers."""
        self.cells, self.codes = self.cells.take(rows), self.codes[rows]

    def give(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Give the cells of some rows of a column. Shapes: rows (n,) bool, values (rows.sum(),)."""
        column = self.cells[name].copy()
        column[rows] = values
        self.cells = self.cells.assign({name: column})
        self.codes[rows, self.places[name]] = CODES[GIVEN]

    def fill(self, filled: Cells, origin: str) -> None:
        """Take the result of a step: the same columns, with the known cells unchanged."""
        self.cells, before = filled, self.cells
        for name, values in filled.items():
            if values is before[name]:
                continue
            codes = self.codes[:, self.places[name]]
            new = (codes == CODES[MISSING]) & ~is_missing(values)
            if new.any():
                codes[new] = CODES[origin]
                self._fills += 1

    def conclude(self, rule: Callable[[Cells], Cells], origin: str) -> None:
        """Take the result of a rule, unless no cell was filled since the rule of this origin last ran."""
        if self._fills_at_conclusion.get(origin) != self._fills:
            self.fill(rule(self.cells), origin)
            self._fills_at_conclusion[origin] = self._fills

    def clear(self, rows: np.ndarray, names: Iterable[str], *origins: str) -> None:
        """Clear the cells of some rows, (n,) bool, and columns that have one of some origins."""
        for name in names:
            codes = self.codes[:, self.places[name]]
            cleared = rows & np.logical_or.reduce([codes == CODES[origin] for origin in origins])
            if cleared.any():
                self.cells = self.cells.assign({name: mask_cells(self.cells[name], cleared)})
                codes[cleared] = CODES[MISSING]
