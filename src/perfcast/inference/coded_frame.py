"""Columns of measured results as integer codes: a comparison with one value is a comparison of small integers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

UNKNOWN = -2
"""Code of a value that no row has; -1 is that of missing cells."""


class Codes(NamedTuple):
    """One coded column. Shapes: `codes` (n,) int, -1 where the cell is missing; `values` are the distinct ones."""

    codes: np.ndarray
    values: list[Any]
    places: Mapping[Hashable, int]


class CodedFrame:
    """Frame whose columns are coded when they are first asked for."""

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
