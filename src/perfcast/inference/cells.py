"""Cells of machines as one array per column, so that imputation works on one machine as fast as on a thousand."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
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
        self._columns: dict[str, Codes] = {}
        self._texts: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> Codes:
        """Return the codes of a column."""
        if name not in self._columns:
            codes, values = pd.factorize(self._frame[name])
            listed = list(values)
            self._columns[name] = Codes(codes.astype(np.int32), listed, {value: at for at, value in enumerate(listed)})
        return self._columns[name]

    def texts(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return the texts of a column in some rows, None where there is none. Shapes: rows (n,) int -> (n,) object."""
        if name not in self._texts:
            self._texts[name] = np.array([*self[name].values, None], dtype=object)
        return np.asarray(self._texts[name][self[name].codes[rows]])

    def equals(self, name: str, value: Any, rows: np.ndarray) -> np.ndarray:
        """Return whether a column is a value in some rows. Shapes: rows (n,) int -> (n,) bool."""
        column = self[name]
        return np.asarray(column.codes[rows] == column.places.get(value, UNKNOWN))
