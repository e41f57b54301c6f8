"""Champions that answer together, and machines and user measurements as each of them reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.name_lookup import TaskNames
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.prediction import join_names
from perfcast.inference.reference_data import DatasetBasis
from perfcast.inference.rules.description_rules import DescriptionRules
from perfcast.inference.user_measurements import UserMeasurements, find_task, read_measurements
from perfcast.utils.errors import UserError


class Suites(tuple[Champion, ...]):
    """Champions of one suite or more, the older suite first: a later one rests on the estimates of the one before.

    Answers name the later suite first. Machines are described by the fields of the `first` champion.
    """

    __slots__ = ()

    def __new__(cls, *champions: Champion) -> Self:
        """Return the champions as one."""
        return super().__new__(cls, champions)

    @property
    def first(self) -> Champion:
        """The champion of the oldest suite."""
        return self[0]

    @property
    def last(self) -> Champion:
        """The champion of the newest suite."""
        return self[-1]

    @property
    def base_tasks(self) -> Mapping[str, str]:
        """Task of the base by every task of a suite that rests on it."""
        return {task: base for each in self[1:] if each.base for task, base in each.base.tasks.items()}

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The names of `Champion.identity`, of all."""
        dataset, name, preset, results_until = zip(*(each.identity for each in reversed(self)), strict=True)
        return join_names(*dataset), join_names(*name), join_names(*preset), join_names(*results_until)

    @property
    def bases(self) -> tuple[DatasetBasis, ...]:
        """The measured results behind the answers."""
        return tuple(each.basis for each in reversed(self))

    @property
    def rules(self) -> DescriptionRules:
        """The rules of the first champion, with the titles of the tasks of all."""
        rules = self.first.rules
        if len(self) == 1:
            return rules
        names = copy(rules.names)
        names.task_titles = {task: title for each in self for task, title in each.rules.names.task_titles.items()}
        return replace(rules, names=names)

    @property
    def tasks(self) -> list[str]:
        """The tasks of all."""
        return [task for each in reversed(self) for task in each.tasks]

    @property
    def task_names(self) -> TaskNames:
        """The names of the tasks of all."""
        aliases = {name: task for each in self for name, task in each.rules.names.alias_tasks(each.tasks).items()}
        return TaskNames(self.tasks, aliases)

    @property
    def targets_of(self) -> Mapping[str, Sequence[str]]:
        """The targets of every task."""
        return {task: targets for each in self for task, targets in each.targets_of.items()}

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices of the datasets."""
        return tuple(notice for each in reversed(self) for notice in each.notices)

    def champion_of(self, task: str) -> Champion:
        """Return the champion of a task."""
        return next((each for each in self if task in each.tasks), self.first)

    def name_month(self, when: pd.Timestamp | None) -> str:
        """Return the months that answers are for, see `Champion.name_month`."""
        return join_names(*(each.name_month(when) for each in reversed(self)))


def parse_suites(
    entries: Sequence[MachineEntry], suites: Suites, *, strict: bool = False, **options: Any
) -> tuple[ParsedMachines, ...]:
    """Parse machines with the fields of each champion, see `parse_batch`; each may refuse some of them.

    A machine that several can use has the same key in all of them.
    Raises: UserError of the first machine that none can use, with `strict` or when it is the only one.
    """
    parsed = []
    for champion in suites:
        try:
            parsed.append(parse_batch(entries, champion, **options))
        except UserError as error:  # the only machine
            refusals = {entry.line: error for entry in entries}
            parsed.append(replace(parse_batch([], champion), refusals=refusals))
    refused = [entry.line for entry in entries if all(entry.line in side.refusals for side in parsed)]
    if refused and (strict or len(entries) == 1):
        raise parsed[0].refusals[refused[0]]
    return _number(parsed)


def _number(parsed: Sequence[ParsedMachines]) -> tuple[ParsedMachines, ...]:
    """Return machines with common keys: numbers from 0 in the order of lines."""
    numbers: dict[tuple[object, ...], int] = {}
    sides = []
    for machines in parsed:
        keys = []
        for key in machines.keys:
            # alternatives of one line differ in a number; names may be spelled differently
            values = machines.machines[key].cells.items()
            given = sorted((name, value) for name, value in values if isinstance(value, float))
            keys.append(numbers.setdefault((machines.line_of(key), *given), len(numbers)))
        sides.append(machines.with_keys(keys))
    return tuple(sides)


def parse_shared(
    entries: Sequence[MachineEntry], suites: Suites, *, strict: bool = False
) -> tuple[ParsedMachines, ...]:
    """Parse machines without a task that every champion can use, in one order; the first side has all refusals.

    Raises: UserError of the first other machine, with `strict` or when it is the only one.
    """
    sides = parse_suites(entries, suites, strict=strict, has_task=False)
    refusals = {line: error for side in reversed(sides) for line, error in side.refusals.items()}
    if refusals and (strict or len(entries) == 1):
        raise refusals[min(refusals)]
    shared = set.intersection(*(set(side.keys) for side in sides))
    keys = [key for key in sides[0].keys if key in shared]
    rows = (np.array([side.keys.index(key) for key in keys], dtype=int) for side in sides)
    first, *others = (side.take(taken).with_keys(range(len(keys))) for side, taken in zip(sides, rows, strict=True))
    return replace(first, refusals=refusals), *others


Measured = Sequence[UserMeasurements | None]
"""User measurements by champion; none where there are none."""


def read_measured(
    entries: Sequence[MachineEntry], suites: Suites, machine: Mapping[str, object] | None = None
) -> Measured:
    """Read measured scores, each by the champion of its task, see `read_measurements`.

    Raises: UserError for a task that none has, and for values that cannot be used.
    """
    sides: dict[str, list[MachineEntry]] = {each.dataset: [] for each in suites}
    for entry in entries:
        task = find_task({**(machine or {}), **entry.values}, suites.first)
        champion = suites.first
        if task is not None and len(suites) > 1:
            champion = suites.champion_of(suites.task_names.get(task, entry.label))
        sides[champion.dataset].append(entry)
    return [
        read_measurements(sides[each.dataset], each, machine) if sides[each.dataset] or len(suites) == 1 else None
        for each in suites
    ]
