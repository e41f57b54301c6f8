"""Hot-deck imputation: the missing cells of a block are taken together from measured results like the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.imputation.rules import Block
from perfcast.schema.table import Table, Tag

_RECENT = pd.DateOffset(months=12)


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
        self._codes: dict[str, np.ndarray] = {}
        self._donors: dict[tuple[object, ...], Mapping[str, Any] | None] = {}

    def fill(self, machines: pd.DataFrame, block: Block) -> pd.DataFrame:
        """Return the machines with the missing cells of a block filled where a result matches them."""
        columns = [name for name in block.columns if name in machines]
        incomplete = np.any([machines[name].array.isna() for name in columns], axis=0)
        if not incomplete.any():
            return machines
        recipients = machines.loc[incomplete]
        ladder = sorted({name for step in block.ladder for name in step})
        donors = [
            self._find_donor(block, dict(zip(columns, cells, strict=True)), dict(zip(ladder, keys, strict=True)))
            for cells, keys in zip(
                recipients[columns].itertuples(index=False), recipients[ladder].itertuples(index=False), strict=True
            )
        ]
        if all(donor is None for donor in donors):
            return machines
        filled = {}
        for name in columns:
            if not machines[name].array.isna().any():
                continue
            values = machines[name].astype(object).to_numpy(copy=True)
            values[incomplete] = [
                cell if not pd.isna(cell) or donor is None else donor[name]
                for cell, donor in zip(recipients[name], donors, strict=True)
            ]
            filled[name] = pd.Series(values, machines.index).astype(self.frame[name].dtype)
        return machines.assign(**filled)

    def _find_donor(self, block: Block, cells: dict[str, Any], keys: dict[str, Any]) -> Mapping[str, Any] | None:
        """Return the most frequent combination of the block's columns, None where no result matches the machine.

        Results that have all given cells are searched first, then those that have all but the last one, and so on.
        """
        key = (block.name, *map(_plain, cells.values()), *map(_plain, keys.values()))
        if key not in self._donors:
            given = [(name, value) for name, value in cells.items() if not pd.isna(value)]
            self._donors[key] = next(
                (
                    donor
                    for count in range(len(given), -1, -1)
                    for step in block.ladder
                    if (donor := self._most_frequent(block, dict(given[:count]), {name: keys[name] for name in step}))
                    is not None
                ),
                None,
            )
        return self._donors[key]

    def _most_frequent(self, block: Block, given: dict[str, Any], keys: dict[str, Any]) -> Mapping[str, Any] | None:
        mask = self._recent.copy() if block.recent else np.ones(len(self.frame), dtype=bool)
        for name, value in {**keys, **given}.items():
            if pd.isna(value):
                return None
            mask &= (self.frame[name] == value).fillna(False).to_numpy(dtype=bool)
        if not mask.any():
            return None
        numbers = self._combinations(block)
        row = int(np.flatnonzero(numbers == np.bincount(numbers[mask]).argmax())[0])
        return {name: self.frame[name].iloc[row] for name in block.columns}

    def _combinations(self, block: Block) -> np.ndarray:
        """Return the number of every result's combination of the block's columns, (n,) int."""
        if block.name not in self._codes:
            groups = self.frame.groupby(list(block.columns), dropna=False, sort=True)
            self._codes[block.name] = groups.ngroup().to_numpy()
        return self._codes[block.name]


def _plain(value: Any) -> Any:
    """Return a value that equals itself: a missing one is None."""
    return None if pd.isna(value) else value
