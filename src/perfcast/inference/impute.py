"""Impute the missing cells of parsed machines: what must be assumed is drawn several times."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perfcast.inference.batch import ParsedMachines, fill_common, fill_facts, stack_machines
from perfcast.inference.cells import Cells, mask_cells
from perfcast.inference.champion import Champion
from perfcast.inference.completed import ASSUMED, CODES, GIVEN, IMPLIED, MEASURED, MISSING, CompletedMachines, Steps
from perfcast.inference.imputation.joint_draws import DRAWS, JointDeck
from perfcast.schema.table import Tag


@dataclass(frozen=True)
class DrawnMachines:
    """Draws of a batch of machines by task, machine by machine, with equal draws once.

    Shapes: `completed` has one row per distinct draw, (k,); `owners` (k,) numbers of the machines by task, from 0;
    `weights` (k,) shares that sum to 1 per machine; `shared` (k,) the donor of the columns that all tasks share.
    """

    completed: CompletedMachines
    owners: np.ndarray
    weights: np.ndarray
    shared: np.ndarray

    def take_owners(self, keep: np.ndarray) -> DrawnMachines:
        """Return the draws of some machines by task, (k,) bool: all draws of a machine or none."""
        owners = np.unique(self.owners[keep], return_inverse=True)[1]
        rows = np.flatnonzero(keep)
        return DrawnMachines(self.completed.take(rows), owners, self.weights[keep], self.shared[keep])


def impute_draws(machines: ParsedMachines, champion: Champion, *, assume: bool = True) -> DrawnMachines:
    """Fill missing cells, several times: what must be assumed is drawn jointly from measured set-ups.

    A machine without a task stands once for every task. In this order: what the batch knows, values that all measured
    rows of the task have, and, with `assume`, usual values and what they imply; given cells stay. What identifies a
    machine is drawn once for all of its tasks. A machine without a missing cell, and one of a dataset without rules of
    draws, has one draw.
    """
    steps = Steps(machines.cells, machines.known.codes, concluded=IMPLIED)
    _repeat_by_task(steps, champion)
    deck = champion.joint_deck if assume else None
    rows = np.arange(len(steps.cells.index))
    if deck is None:
        return DrawnMachines(_assume(steps, champion, assume=assume), rows, np.ones(len(rows)), np.full(len(rows), -1))
    donor_rows = [deck.draw(steps.cells, by_task=by_task) for by_task in (False, True)]
    draws = np.column_stack([np.repeat(rows, DRAWS), *(each.ravel() for each in donor_rows)])
    (owners, shared, by_row), counts = _count_rows(draws)
    steps.repeat(owners)
    for by_task, numbers in ((False, shared), (True, by_row)):
        has_donor = numbers >= 0
        filled = deck.fill(steps.cells.take(has_donor), numbers[has_donor], by_task=by_task)
        steps.take(_replace_rows(steps.cells, has_donor, filled), ASSUMED)
    steps.conclude(champion.rules.fill_implied, IMPLIED)
    return _complete_draws(steps, DrawnMachines(steps.completed, owners, counts / DRAWS, shared), champion)


def complete_draws(drawn: DrawnMachines, champion: Champion, *, assume: bool = True) -> DrawnMachines:
    """Fill the missing cells of draws whose cells were changed, as `impute_draws` does."""
    steps = Steps(drawn.completed.cells, drawn.completed.codes)
    fill_facts(steps, champion)
    steps.conclude(champion.rules.fill_implied, IMPLIED)
    steps.take(fill_common(steps.cells, champion, Tag.TASK), MEASURED)
    return _complete_draws(steps, drawn, champion, assume=assume)


def change_draws(
    drawn: DrawnMachines,
    key: int,
    values: Mapping[str, np.ndarray],
    cleared: Collection[str],
    per_unit: Mapping[str, Sequence[str]],
) -> DrawnMachines:
    """Return the draws of one machine with other given cells, and without those to be filled anew.

    What other values imply is cleared as well, unless nothing changes; cleared columns of `per_unit` that were not
    given grow with their units.
    Args: `key` is the index of the new machine, `values` (1,) each.
    """
    cells, codes = drawn.completed.cells, drawn.completed.codes.copy()
    count = len(codes)
    given = {name: np.repeat(value, count) for name, value in values.items()}
    changed = dict(given)
    for place, (name, column) in enumerate(cells.items()):
        if name in given:
            codes[:, place] = CODES[GIVEN]
        elif name in per_unit and name in cleared and codes[0, place] != CODES[GIVEN]:
            factors = [given.get(unit, cells[unit]) / cells[unit] for unit in per_unit[name]]
            changed[name] = np.maximum(np.rint(column * np.prod(factors, axis=0)), np.minimum(column, 1.0))
        else:
            unsure = np.full(count, name in cleared) | (codes[:, place] == CODES[IMPLIED])
            if given and unsure.any():
                changed[name] = mask_cells(column, unsure)
                codes[unsure, place] = CODES[MISSING]
    completed = CompletedMachines(Cells({**cells, **changed}, np.full(count, key)), codes)
    return replace(drawn, completed=completed)


def join_draws(parts: Sequence[DrawnMachines]) -> DrawnMachines:
    """Return the draws of several batches of machines as one."""
    first = np.cumsum([0, *(int(part.owners[-1]) + 1 for part in parts)])

    def join(arrays: Iterable[np.ndarray]) -> np.ndarray:
        return np.concatenate(list(arrays))

    names = list(parts[0].completed.cells)
    cells = {name: join(part.completed.cells[name] for part in parts) for name in names}
    index = join(part.completed.cells.index for part in parts)
    return DrawnMachines(
        CompletedMachines(Cells(cells, index), join(part.completed.codes for part in parts)),
        join(part.owners + begin for part, begin in zip(parts, first[:-1], strict=True)),
        join(part.weights for part in parts),
        join(part.shared for part in parts),
    )


def hold_equal(machines: ParsedMachines, champion: Champion) -> tuple[ParsedMachines, tuple[str, ...]]:
    """Return machines to compare, and notes: those that do not state a column of `held_equal` have one value of it.

    It is the one most often stated or drawn for them among those that break no limit of any; without such a value the
    column stays as it is.
    """
    notes: list[str] = []
    for name in champion.rules.held_equal:
        parsed = [machines.machines[key] for key in machines.keys]
        missing = [name not in machine.cells for machine in parsed]
        if not any(missing) or len(missing) < 2:
            continue
        drawn = impute_draws(machines, champion)
        counts = pd.Series(drawn.weights).groupby(drawn.completed.cells[name]).sum().sort_values(ascending=False)
        measured = pd.Series(champion.reference_data.column(name)).value_counts()
        for value in dict.fromkeys([*counts.index, *measured.index]):
            stated = [replace(each, cells={name: value, **each.cells}) for each in parsed]
            held = stack_machines(stated, champion, expand=False)
            if not held.refusals:
                machines = replace(held, refusals=machines.refusals)
                notes.append(f"{name}: {value} is assumed for all candidates that state none")
                break
        else:
            notes.append(f"{name}: no value is possible for all candidates, so each has its own")
    return machines, tuple(notes)


def _complete_draws(steps: Steps, drawn: DrawnMachines, champion: Champion, *, assume: bool = True) -> DrawnMachines:
    """Leave out the draws that break a limit, unless a machine has no other, and assume what is still missing."""
    owners, weights = drawn.owners, drawn.weights
    is_possible = np.ones(len(owners), dtype=bool)
    is_possible[[violation.line for violation in champion.rules.find_violations(steps.numbered)]] = False
    keep = np.flatnonzero(is_possible | (np.bincount(owners, is_possible)[owners] == 0))
    steps.repeat(keep)
    owners, weights = owners[keep], weights[keep]
    if champion.joint_deck is not None and champion.joint_deck.rules.replaced:
        _replace_impossible(steps, champion, champion.joint_deck)
    completed = _assume(steps, champion, assume=assume)
    return DrawnMachines(completed, owners, weights / np.bincount(owners, weights)[owners], drawn.shared[keep])


def _replace_impossible(steps: Steps, champion: Champion, deck: JointDeck) -> None:
    """Replace assumed cells that break a limit by the measured set-up that is most frequent among possible ones."""
    numbered = steps.numbered
    for row in sorted({violation.line for violation in champion.rules.find_violations(numbered)}):
        assumed = [name for name in deck.rules.taken if steps.has_origin(row, name, ASSUMED)]
        for setup in deck.frame[assumed].value_counts().index if assumed else ():
            changed = {name: np.array([value], dtype=object) for name, value in zip(assumed, setup, strict=True)}
            if not any(champion.rules.find_violations(numbered.take(np.array([row])).assign(changed))):
                steps.replace(row, changed)
                break


def _count_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct rows in their order, and how often each is there. Shapes: (n, columns) -> (columns, k), (k,)."""
    ordered = rows[np.lexsort(rows.T[::-1])]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(ordered)]
    first = np.flatnonzero(is_new)
    return ordered[first].T, np.diff(np.append(first, len(ordered)))


def _replace_rows(cells: Cells, rows: np.ndarray, replacement: Cells) -> Cells:
    """Return cells with some rows replaced. Shapes: rows (n,) bool, replacement (rows.sum(),) a column."""
    if rows.all():
        return replacement
    changed = {}
    for name, values in replacement.items():
        changed[name] = cells[name].copy()
        changed[name][rows] = values
    return cells.assign(changed)


def _repeat_by_task(steps: Steps, champion: Champion) -> None:
    """Repeat machines by task, and fill what all measured rows of the task have."""
    task = champion.reference_data.measured.column_of(Tag.TASK)
    tasks = [champion.tasks if name is None else [name] for name in steps.cells[task].tolist()]
    steps.repeat(np.repeat(np.arange(len(tasks)), [len(names) for names in tasks]))
    steps.take(steps.cells.assign({task: np.array([name for names in tasks for name in names], dtype=object)}), GIVEN)
    steps.take(fill_common(steps.cells, champion, Tag.TASK), MEASURED)


def _assume(steps: Steps, champion: Champion, *, assume: bool) -> CompletedMachines:
    """Fill usual values, and what they imply."""
    rules = champion.rules
    if assume:
        for block in rules.blocks:
            steps.take(champion.hot_deck.fill(steps.cells, block), ASSUMED)
            steps.conclude(rules.fill_implied, IMPLIED)
            steps.conclude(lambda cells: rules.fill_usual(cells, champion.hot_deck.last), ASSUMED)
        # what was implied by few known cells may be another value now
        steps.clear(np.ones(len(steps.codes), dtype=bool), list(steps.cells), IMPLIED)
        steps.take(rules.fill_implied(steps.cells), IMPLIED)
        for violation in list(rules.find_violations(steps.numbered)):
            steps.clear(np.arange(len(steps.codes)) == violation.line, violation.columns, ASSUMED, IMPLIED)
        steps.take(rules.fill_implied(steps.cells), IMPLIED)
    return steps.completed
