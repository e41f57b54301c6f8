"""A champion with one that rests on its estimates, and machines and measurements as both read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.inference.bridge import Bridge
from perfcast.inference.cells import Cells, CompletedMachines
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.name_lookup import TaskNames
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.prediction import join_names
from perfcast.inference.rules.description_rules import DescriptionRules
from perfcast.inference.user_measurements import UserMeasurements, find_task, read_measurements
from perfcast.utils.errors import UserError


class BridgedPair(NamedTuple):
    """A champion, and one whose features are its estimates."""

    base: Champion
    bridged: Champion

    @property
    def bridge(self) -> Bridge:
        """The bridge between both."""
        if not isinstance(self.bridged.base, Bridge):
            raise ValueError(f"{self.bridged.dataset} has no bridge")
        return self.bridged.base

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The names of `Champion.identity`, of both, the later suite first."""
        names = zip(self.bridged.identity, self.base.identity, strict=True)
        dataset, name, preset, results_until = (join_names(*each) for each in names)
        return dataset, name, preset, results_until

    def name_month(self, when: pd.Timestamp | None) -> str:
        """Return the months that answers are for, see `Champion.name_month`."""
        return join_names(*(each.name_month(when) for each in (self.bridged, self.base)))

    @property
    def rules(self) -> DescriptionRules:
        """The rules of the base, with the titles of the tasks of both."""
        names = copy(self.base.rules.names)
        names.task_titles = {**names.task_titles, **self.bridged.rules.names.task_titles}
        return replace(self.base.rules, names=names)

    @property
    def tasks(self) -> list[str]:
        """The tasks of both, those of the later suite first."""
        return [*self.bridged.tasks, *self.base.tasks]

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices of both datasets."""
        return (*self.bridged.notices, *self.base.notices)

    @property
    def task_names(self) -> TaskNames:
        """The names of the tasks of both."""
        aliases = {name: task for each in self for name, task in each.rules.names.alias_tasks(each.tasks).items()}
        return TaskNames(self.tasks, aliases)

    @property
    def targets_of(self) -> dict[str, Sequence[str]]:
        """The targets of every task."""
        return {**self.base.targets_of, **self.bridged.targets_of}


def list_champions(champions: Champion | BridgedPair) -> tuple[Champion, ...]:
    """Return the champion, or both of a pair."""
    return tuple(champions) if isinstance(champions, BridgedPair) else (champions,)


def parse_pair(
    entries: Sequence[MachineEntry],
    pair: BridgedPair,
    *,
    strict: bool = False,
    has_task: bool = True,
    asks_capacity: bool = False,
) -> tuple[ParsedMachines, ParsedMachines]:
    """Parse machines with the fields of each champion, see `parse_batch`; either may refuse some of them.

    A machine that both can use has the same key in both.
    Raises: UserError of the first machine that neither can use, with `strict` or when it is the only one.
    """
    parsed = []
    for champion in pair:
        try:
            parsed.append(parse_batch(entries, champion, has_task=has_task, asks_capacity=asks_capacity))
        except UserError as error:  # the only machine
            refusals = {entry.line: error for entry in entries}
            parsed.append(replace(parse_batch([], champion), refusals=refusals))
    first, second = (machines.refusals for machines in parsed)
    neither = [entry.line for entry in entries if entry.line in first and entry.line in second]
    if neither and (strict or len(entries) == 1):
        raise first[neither[0]]
    numbers: dict[tuple[object, ...], int] = {}
    sides = []
    for machines in parsed:
        keys = []
        for key in machines.keys:
            # alternatives of one line differ in a number; names may be spelled differently
            values = machines.machines[key].cells.items()
            given = sorted((name, value) for name, value in values if isinstance(value, float))
            keys.append(numbers.setdefault((machines.line_of(key), *given), len(numbers)))
        known = CompletedMachines(Cells(machines.cells, np.array(keys, dtype=int)), machines.known.codes)
        by_key = dict(zip(keys, (machines.machines[key] for key in machines.keys), strict=True))
        sides.append(replace(machines, known=known, machines=by_key))
    return sides[0], sides[1]


def parse_shared(
    entries: Sequence[MachineEntry], champions: Champion | BridgedPair, *, strict: bool = False
) -> tuple[ParsedMachines, ...]:
    """Parse machines without a task that every champion can use, in one order; the first side has all refusals.

    Raises: UserError of the first other machine, with `strict` or when it is the only one.
    """
    if not isinstance(champions, BridgedPair):
        return (parse_batch(entries, champions, strict=strict, has_task=False),)
    sides = parse_pair(entries, champions, strict=strict, has_task=False)
    refusals = {**sides[1].refusals, **sides[0].refusals}
    if refusals and (strict or len(entries) == 1):
        raise refusals[min(refusals)]
    keys = [key for key in sides[0].keys if key in set(sides[1].keys)]
    rows = (np.array([side.keys.index(key) for key in keys], dtype=int) for side in sides)
    shared = [side.take(taken).numbered() for side, taken in zip(sides, rows, strict=True)]
    return replace(shared[0], refusals=refusals), shared[1]


Measured = Sequence[UserMeasurements | None]
"""User measurements by champion."""


def read_measured(
    entries: Sequence[MachineEntry], champions: Champion | BridgedPair, machine: Mapping[str, object] | None = None
) -> Measured:
    """Read measured scores, of a pair each by the champion of its task, see `read_measurements`.

    Raises: UserError for a task that neither has, and for values that cannot be used.
    """
    if not isinstance(champions, BridgedPair):
        return (read_measurements(entries, champions, machine),)
    sides: tuple[list[MachineEntry], list[MachineEntry]] = ([], [])
    for entry in entries:
        task = find_task({**(machine or {}), **entry.values}, champions.base)
        known = task is None or champions.task_names.get(task, entry.label) in champions.base.tasks
        sides[not known].append(entry)
    return [read_measurements(each, by, machine) if each else None for each, by in zip(sides, champions, strict=True)]
