"""Cells of machines with the origin of every one, and the steps that fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, is_missing, mask_cells

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
_NAMES = np.array(list(ORIGINS), dtype=object)
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
        return pd.DataFrame(_NAMES[self.codes], pd.Index(self.cells.index), list(self.cells), dtype=object)

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
