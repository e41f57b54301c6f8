"""Typical machines by identity: those of measured entities, which are saved with a champion, and those made since."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, CompletedMachines, list_rows, read_column, stack_cells
from perfcast.schema.table import Column

Identity = tuple[object, ...]
"""Cells that name a machine, and after them what is assumed before its set-up, as pairs of a column and a value."""

_MAX_REMEMBERED = 2_000
"""Typical machines that are remembered beside the saved ones."""
_ORIGINS, _IDENTITY = "origins", "identity "


class TypicalMachines:
    """Typical machines by identity, each with one row for every task of its champion.

    Args: `saved` is a table by `tabulate`, None without one; `tasks` is the number of tasks.
    """

    def __init__(self, saved: pd.DataFrame | None, tasks: int) -> None:
        self._saved, self._tasks = saved, tasks
        self.made: dict[Identity, CompletedMachines] = {}

    def __contains__(self, identity: Identity) -> bool:
        return identity in self.made or identity in self._places

    def __getitem__(self, identity: Identity) -> CompletedMachines:
        if identity in self.made:
            return self.made[identity]
        first = self._places[identity]
        return self._machines.take(np.arange(first, first + self._tasks))

    def make_room(self, count: int) -> None:
        """Forget what was made where as many further machines are too many."""
        if len(self.made) + count > _MAX_REMEMBERED:
            self.made.clear()

    def add(self, identities: Sequence[Identity], machines: CompletedMachines) -> None:
        """Remember typical machines, in the order of their identities."""
        for number, identity in enumerate(identities):
            self.made[identity] = machines.take(np.arange(number * self._tasks, (number + 1) * self._tasks))

    @cached_property
    def _places(self) -> dict[Identity, int]:
        """The first row of every saved machine, by identity."""
        if self._saved is None:
            return {}
        named = self._saved.iloc[:: self._tasks]
        names = [str(name) for name in named if str(name).startswith(_IDENTITY)]
        identities = list_rows({name: read_column(named[name]) for name in names}, names)
        return {identity: number * self._tasks for number, identity in enumerate(identities)}

    @cached_property
    def _machines(self) -> CompletedMachines:
        """The saved machines."""
        assert self._saved is not None
        names = [str(name) for name in self._saved if name != _ORIGINS and not str(name).startswith(_IDENTITY)]
        cells = Cells({name: read_column(self._saved[name]) for name in names}, np.arange(len(self._saved)))
        codes = np.frombuffer(b"".join(self._saved[_ORIGINS]), dtype=np.int8).reshape(len(self._saved), len(names))
        return CompletedMachines(cells, codes)

    def tabulate(self, columns: Sequence[Column], keys: Sequence[str]) -> pd.DataFrame | None:
        """Return the machines that were made as a table, None without any, and forget them.

        One with an assumption in its identity is left out.
        Args: `columns` are those of machines, `keys` the ones that name a machine, in the order of an identity.
        """
        named = [identity for identity in self.made if len(identity) == len(keys)]
        if not named:
            return None
        machines = join_machines([self.made[identity] for identity in named])
        self.made.clear()
        table = Cells(machines.cells, np.arange(len(machines.codes))).to_frame()
        table[_ORIGINS] = [row.tobytes() for row in machines.codes]
        # several columns of an identity may be missing: each has the type of its column
        identities = [dict(zip(keys, identity, strict=True)) for identity in named]
        typed = [column for column in columns if column.name in keys]
        stacked = stack_cells(identities, typed).take(np.repeat(np.arange(len(named)), self._tasks))
        repeated = Cells({f"{_IDENTITY}{name}": stacked[name] for name in keys}, table.index.to_numpy())
        return pd.concat([table, repeated.to_frame()], axis=1)


def join_machines(parts: Sequence[CompletedMachines]) -> CompletedMachines:
    """Return several batches of machines as one."""
    cells = {name: np.concatenate([part.cells[name] for part in parts]) for name in parts[0].cells}
    index = np.concatenate([part.cells.index for part in parts])
    return CompletedMachines(Cells(cells, index), np.concatenate([part.codes for part in parts]))
