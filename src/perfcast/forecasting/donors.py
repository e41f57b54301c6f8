"""What is usual: missing cells of a block are taken together from the results that most often are like the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from perfcast.completion.base import Block
from perfcast.schema import Table, Tag

_RECENT = pd.DateOffset(months=12)


class Donors:
    """Measured results that may lend their cells.

    Source: hot-deck imputation (Andridge and Little, 2010, Int. Stat. Rev. 78), the donor being the most frequent
    combination of the block's columns among the results that match.
    """

    def __init__(self, measured: Table, until: pd.Timestamp | None = None) -> None:
        """Ask the results published until a month, all without one."""
        time = measured.select(tag=Tag.TIME)
        frame = measured.frame
        if time and until is not None:
            frame = frame[frame[time[0]] <= until]
        self.frame = frame.reset_index(drop=True)
        self.last = pd.Timestamp(self.frame[time[0]].max()) if time else pd.Timestamp.min
        self._recent = (self.frame[time[0]] > self.last - _RECENT).to_numpy() if time else np.ones(len(frame), bool)
        self._codes: dict[str, np.ndarray] = {}
        self._found: dict[tuple[object, ...], Mapping[str, Any] | None] = {}

    def fill(self, machines: pd.DataFrame, block: Block) -> pd.DataFrame:
        """Return the machines with the missing cells of a block filled where some result is like them."""
        columns = [name for name in block.columns if name in machines]
        incomplete = np.any([machines[name].array.isna() for name in columns], axis=0)
        if not incomplete.any():
            return machines
        asked = machines.loc[incomplete]
        ladder = sorted({name for step in block.ladder for name in step})
        lent = [
            self._donor(block, dict(zip(columns, own, strict=True)), dict(zip(ladder, like, strict=True)))
            for own, like in zip(
                asked[columns].itertuples(index=False), asked[ladder].itertuples(index=False), strict=True
            )
        ]
        if all(donor is None for donor in lent):
            return machines
        filled = {}
        for name in columns:
            if not machines[name].array.isna().any():
                continue
            values = machines[name].astype(object).to_numpy(copy=True)
            values[incomplete] = [
                own if not pd.isna(own) or donor is None else donor[name]
                for own, donor in zip(asked[name], lent, strict=True)
            ]
            filled[name] = pd.Series(values, machines.index).astype(self.frame[name].dtype)
        return machines.assign(**filled)

    def _donor(self, block: Block, own: dict[str, Any], like: dict[str, Any]) -> Mapping[str, Any] | None:
        """Return the most frequent combination of the block's columns, None where no result is like the machine.

        What is given comes first: results are asked that have all of it, then all but its last column, and so on.
        """
        key = (block.name, *map(_plain, own.values()), *map(_plain, like.values()))
        if key not in self._found:
            given = [(name, value) for name, value in own.items() if not pd.isna(value)]
            self._found[key] = next(
                (
                    donor
                    for kept in range(len(given), -1, -1)
                    for step in block.ladder
                    if (donor := self._most_frequent(block, dict(given[:kept]), {name: like[name] for name in step}))
                    is not None
                ),
                None,
            )
        return self._found[key]

    def _most_frequent(self, block: Block, given: dict[str, Any], like: dict[str, Any]) -> Mapping[str, Any] | None:
        mask = self._recent.copy() if block.recent else np.ones(len(self.frame), dtype=bool)
        for name, value in {**like, **given}.items():
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
