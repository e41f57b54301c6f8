"""Cells of machines as one array per column, with the origin of every one, and the steps that fill them.

Imputation works on one machine as fast as on a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

_MISSING = {"f": np.nan, "M": np.datetime64("NaT"), "O": None}
"""Kind of an array -> its missing value."""
UNKNOWN = -2
"""Code of a value that no row of a `CodedFrame` has; -1 is that of missing cells."""


class Cells(Mapping[str, np.ndarray]):
    """Columns of machines by name, each an array: float64, datetime64[us], or objects for texts.

    A missing cell is NaN, NaT or None. Columns are never changed in place, so that several `Cells` share them.
    Shapes: every column (n,), `index` (n,).
    """

    def __init__(self, columns: Mapping[str, np.ndarray], index: np.ndarray) -> None:
        self._columns, self.index = dict(columns), index

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def assign(self, changed: Mapping[str, np.ndarray]) -> Self:
        """Return cells with other columns."""
        return type(self)({**self._columns, **changed}, self.index)

    def take(self, rows: np.ndarray) -> Self:
        """Return some rows, by numbers (m,) int or flags (n,) bool."""
        return type(self)({name: values[rows] for name, values in self._columns.items()}, self.index[rows])

    def append(self, others: Self) -> Self:
        """Return the rows of both."""
        columns = {name: np.concatenate([values, others[name]]) for name, values in self.items()}
        return type(self)(columns, np.concatenate([self.index, others.index]))

    def to_frame(self, *, coded: bool = False) -> pd.DataFrame:
        """Return a frame with the types of a table, texts as pandas categories where `coded`."""
        index = pd.Index(self.index)
        typed = {
            name: values if values.dtype.kind != "O" else _to_categories(values) if coded else pd.array(values, "str")
            for name, values in self._columns.items()
        }
        return pd.DataFrame(typed, index)

    def complete(self, types: Mapping[str, np.dtype]) -> Self:
        """Return cells with exactly some columns, missing where there are none; `types` are those of the arrays."""
        nothing = np.zeros(len(self.index), dtype=int)
        columns = self._columns
        return type(self)(
            {name: columns[name] if name in columns else missing_cell(dtype)[nothing] for name, dtype in types.items()},
            self.index,
        )

    @classmethod
    def read(cls, frame: pd.DataFrame) -> Self:
        """Read a frame."""
        return cls({str(name): read_column(values) for name, values in frame.items()}, frame.index.to_numpy())


def read_column(values: pd.Series) -> np.ndarray:
    """Return a column as `Cells` holds it."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "fM":
        return np.asarray(values)
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biu":
        return values.to_numpy(dtype=float)
    texts = values.to_numpy(dtype=object, copy=True)
    texts[values.isna().to_numpy()] = None
    return texts


def missing_cell(dtype: np.dtype | None) -> np.ndarray:
    """Return a column of one missing cell."""
    return np.array([_MISSING["O" if dtype is None else dtype.kind]], dtype=dtype)


def is_missing(values: np.ndarray) -> np.ndarray:
    """Return which cells of a column are missing, (n,) bool."""
    if values.dtype.kind == "O":
        return np.asarray(values == None)  # noqa: E711  (element by element)
    return np.asarray(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values))


def mask_cells(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a column with some of its cells made missing. Shapes: values (n,), rows (n,) bool."""
    return np.where(rows, missing_cell(values.dtype), values)


def list_rows(cells: Mapping[str, np.ndarray], names: Sequence[str]) -> list[tuple[object, ...]]:
    """Return the cells of every row as a tuple that equals that of another row with the same cells."""
    plain = []
    for name in names:
        values = cells[name]
        if values.dtype.kind != "O":
            values = np.where(is_missing(values), missing_cell(None), values.astype(object))
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


def _to_categories(values: np.ndarray) -> pd.Categorical:
    codes, texts = pd.factorize(values)
    return pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object), validate=False)


class Codes(NamedTuple):
    """One coded column. Shapes: `codes` (n,) int, -1 where the cell is missing; `values` are the distinct ones."""

    codes: np.ndarray
    values: list[Any]
    places: Mapping[Hashable, int]


class CodedFrame:
    """Frame whose columns are coded when they are first asked for: a comparison is one of small integers."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._read = cache(self._read_codes)

    def __getitem__(self, name: str) -> Codes:
        """Return the codes of a column."""
        return self._read(name)

    def _read_codes(self, name: str) -> Codes:
        codes, values = pd.factorize(self._frame[name])
        listed = list(values)
        return Codes(codes.astype(np.int32), listed, {value: at for at, value in enumerate(listed)})

    def equals(self, name: str, value: Any, rows: np.ndarray) -> np.ndarray:
        """Return whether a column is a value in some rows. Shapes: rows (n,) int -> (n,) bool."""
        column = self[name]
        return np.asarray(column.codes[rows] == column.places.get(value, UNKNOWN))


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
"""Origins of a value and their meaning; see `DescriptionRules.origin_meanings`."""
CODES = {origin: code for code, origin in enumerate(ORIGINS)}
"""Origin -> its place among ORIGINS."""


@dataclass(frozen=True)
class CompletedMachines:
    """Batch of machines with every standard column.

    Shapes: `codes` (n, columns) int8, the place of every cell's origin among ORIGINS; the index is that of the
    machines, repeated by task.
    """

    cells: Cells
    codes: np.ndarray

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The cells as a frame."""
        return self.cells.to_frame()

    @cached_property
    def origins(self) -> pd.DataFrame:
        """The origin of every cell as text, in the form of `frame`."""
        return pd.DataFrame(
            np.array(list(ORIGINS), dtype=object)[self.codes],
            pd.Index(self.cells.index),
            list(self.cells),
            dtype=object,
        )

    def has_origin(self, *origins: str) -> np.ndarray:
        """Return which cells have one of some origins, (n, columns) bool."""
        return np.asarray(np.isin(self.codes, [CODES[origin] for origin in origins]))

    def take(self, rows: np.ndarray) -> CompletedMachines:
        """Return some rows, by their numbers (m,) int or flags (n,) bool."""
        return CompletedMachines(self.cells.take(rows), self.codes[rows])

    def give(self, name: str, values: np.ndarray) -> CompletedMachines:
        """Return machines with other given cells of a column. Shapes: values (n,)."""
        codes = self.codes.copy()
        codes[:, list(self.cells).index(name)] = CODES[GIVEN]
        return CompletedMachines(self.cells.assign({name: values}), codes)

    def clear(self, cleared: np.ndarray) -> Cells:
        """Return the cells without some of them. Shapes: cleared (n, columns) bool."""
        masks = {name: cleared[:, place] for place, name in enumerate(self.cells)}
        changed = {name: mask_cells(self.cells[name], mask) for name, mask in masks.items() if mask.any()}
        return self.cells.assign(changed)


class Steps:
    """Cells that are filled in steps, with the origin of every one.

    Args: `codes` are known origins; `concluded` is the origin whose rule nothing was filled after.
    """

    def __init__(self, cells: Cells, codes: np.ndarray | None = None, concluded: str = "") -> None:
        self.cells = cells
        self._places = {name: place for place, name in enumerate(cells)}
        if codes is None:
            missing = np.column_stack([is_missing(values) for values in cells.values()])
            codes = np.where(missing, CODES[MISSING], CODES[GIVEN]).astype(np.int8)
        self.codes = codes
        self._fills = 0
        self._fills_at_conclusion = {concluded: 0}

    @property
    def completed(self) -> CompletedMachines:
        """The cells with their origins."""
        return CompletedMachines(self.cells, self.codes)

    @property
    def numbered(self) -> Cells:
        """The cells with the number of every row as its index."""
        return Cells(self.cells, np.arange(len(self.codes)))

    def take(self, filled: Cells, origin: str) -> None:
        """Take the result of a step: the same columns, with the known cells unchanged."""
        self.cells, before = filled, self.cells
        for name, values in filled.items():
            if values is before[name]:
                continue
            codes = self.codes[:, self._places[name]]
            new = (codes == CODES[MISSING]) & ~is_missing(values)
            if new.any():
                codes[new] = CODES[origin]
                self._fills += 1

    def conclude(self, rule: Callable[[Cells], Cells], origin: str) -> None:
        """Take the result of a rule, unless no cell was filled since the rule of this origin last ran."""
        if self._fills_at_conclusion.get(origin) != self._fills:
            self.take(rule(self.cells), origin)
            self._fills_at_conclusion[origin] = self._fills

    def clear(self, rows: np.ndarray, names: Iterable[str], *origins: str) -> None:
        """Clear the cells of some rows, (n,) bool, and columns that have one of some origins."""
        for name in names:
            codes = self.codes[:, self._places[name]]
            cleared = rows & np.isin(codes, [CODES[origin] for origin in origins])
            if cleared.any():
                self.cells = self.cells.assign({name: mask_cells(self.cells[name], cleared)})
                codes[cleared] = CODES[MISSING]

    def has_origin(self, row: int, name: str, origin: str) -> bool:
        """Return whether a cell has an origin."""
        return bool(self.codes[row, self._places[name]] == CODES[origin])

    def replace(self, row: int, changed: Mapping[str, np.ndarray]) -> None:
        """Replace cells of one row, given as columns of one cell, and keep their origins."""
        selected = np.arange(len(self.codes)) == row
        self.cells = self.cells.assign(
            {name: np.where(selected, values, self.cells[name]) for name, values in changed.items()}
        )

    def repeat(self, rows: np.ndarray) -> None:
        """Repeat rows, (m,) int of row numbers."""
        self.cells, self.codes = self.cells.take(rows), self.codes[rows]

    def give(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Give the cells of some rows of a column. Shapes: rows (n,) bool, values (rows.sum(),)."""
        column = self.cells[name].copy()
        column[rows] = values
        self.cells = self.cells.assign({name: column})
        self.codes[rows, self._places[name]] = CODES[GIVEN]
