"""Hot-deck imputation: measured results donate the usual values of machines of their kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, CodedFrame, is_missing, list_rows
from perfcast.schema.table import Table, Tag

_RECENT = pd.DateOffset(months=12)


@dataclass(frozen=True)
class Block:
    """Columns that hot-deck imputation takes together from one measured result.

    `columns`: the most important first. `ladder`: sets of columns in which donors must equal the machine, the
    strictest first. `recent`: whether only the last year of results may donate (software changes) or all of them (a
    memory module does not). `new_entity`: whether only machines whose entity has no measured result receive.
    """

    name: str
    columns: tuple[str, ...]
    ladder: tuple[tuple[str, ...], ...]
    recent: bool
    new_entity: bool = False


class HotDeck:
    """Measured results that may donate their cells.

    The donor is the most frequent combination of the block's columns among the results that match.
    Source: Andridge and Little, "A review of hot deck imputation", Int. Stat. Rev. 78, 2010.
    """

    def __init__(self, measured: Table, until: pd.Timestamp | None = None) -> None:
        """Keep the results published until a month, all without one."""
        time = measured.select(tag=Tag.TIME)
        frame = measured.frame
        if time and until is not None:
            frame = frame[frame[time[0]] <= until]
        self.frame = frame.reset_index(drop=True)
        self.last = pd.Timestamp(self.frame[time[0]].max()) if time else pd.Timestamp.min
        self._recent = (self.frame[time[0]] > self.last - _RECENT).to_numpy() if time else np.ones(len(frame), bool)
        entity = measured.select(tag=Tag.ENTITY)
        self._entity = entity[0] if entity else ""
        self._measured = frozenset(self.frame[self._entity].dropna().unique()) if entity else frozenset()
        self._coded = CodedFrame(self.frame)
        self._numbers: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._donor_by_key: dict[tuple[object, ...], Mapping[str, Any] | None] = {}

    def fill(self, machines: Cells, block: Block) -> Cells:
        """Return the machines with the missing cells of a block filled where a result matches them.

        A dataset need not have all columns of a block: the others are left out, and steps of the ladder with them.
        """
        columns = tuple(name for name in block.columns if name in machines)
        ladder = tuple(step for step in block.ladder if all(name in machines for name in step))
        block = replace(block, columns=columns, ladder=ladder)
        missing = {name: is_missing(machines[name]) for name in columns}
        incomplete = np.any(list(missing.values()), axis=0) if columns else np.zeros(0, dtype=bool)
        if block.new_entity:
            incomplete &= [model not in self._measured for model in machines[self._entity].tolist()]
        if not incomplete.any():
            return machines
        names = list(dict.fromkeys([*columns, *sorted({name for step in ladder for name in step})]))
        recipients = np.flatnonzero(incomplete)
        rows = list_rows({name: machines[name][recipients] for name in names}, names)
        donor_by_row = {row: self._find_donor(block, columns, dict(zip(names, row, strict=True))) for row in set(rows)}
        filled = {name: machines[name].copy() for name in columns if missing[name].any()}
        for place, row in zip(recipients.tolist(), rows, strict=True):
            donor = donor_by_row[row]
            if donor is not None:
                for name, values in filled.items():
                    if missing[name][place]:
                        values[place] = donor[name]
        return machines.assign(filled) if any(donor is not None for donor in donor_by_row.values()) else machines

    def _find_donor(self, block: Block, columns: Sequence[str], cells: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the most frequent combination of the block's columns, None where no result matches the machine.

        Results that have all given cells are searched first, then those that have all but the last one, and so on.
        """
        key = (block.name, *cells.values())
        if key not in self._donor_by_key:
            known = [(name, cells[name]) for name in columns if cells[name] is not None]
            rows = self._find_rows(block, known, cells)
            if not len(rows):
                self._donor_by_key[key] = None
            else:
                numbers, first = self._combinations(block)
                row = first[np.bincount(numbers[rows]).argmax()]
                self._donor_by_key[key] = {name: self._read_cell(name, row) for name in block.columns}
        return self._donor_by_key[key]

    def _find_rows(self, block: Block, known: Sequence[tuple[str, Any]], cells: Mapping[str, Any]) -> np.ndarray:
        """Return the results that agree with the machine in as many of the first known cells as any do."""
        best, best_count = np.zeros(0, dtype=int), -1
        for step in block.ladder:
            if any(cells[name] is None for name in step):
                continue
            rows, count = np.flatnonzero(self._recent) if block.recent else np.arange(len(self.frame)), 0
            for name in step:
                rows = rows[self._coded.equals(name, cells[name], rows)]
            for name, value in known if len(rows) else ():
                narrower = rows[self._coded.equals(name, value, rows)]
                if not len(narrower):
                    break
                rows, count = narrower, count + 1
            if len(rows) and count > best_count:
                best, best_count = rows, count
        return best

    def _read_cell(self, name: str, row: int) -> Any:
        values = self.frame[name].array
        cell = values[row]
        return None if values.dtype == "str" and pd.isna(cell) else cell

    def _combinations(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of every result's combination of the block's columns, and the first row of each."""
        if block.name not in self._numbers:
            groups = self.frame.groupby(list(block.columns), dropna=False, sort=True)
            numbers = groups.ngroup().to_numpy()
            self._numbers[block.name] = numbers, np.unique(numbers, return_index=True)[1]
        return self._numbers[block.name]
