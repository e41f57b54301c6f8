"""Impute the missing cells of parsed machines, and record the origin of every cell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, fill_missing, is_missing, mask_cells
from perfcast.inference.champion import Champion
from perfcast.inference.imputation.joint_draws import DRAWS, JointDeck
from perfcast.inference.limit_errors import list_errors, name_field
from perfcast.inference.parse import ParsedMachines
from perfcast.inference.reference_data import ReferenceData
from perfcast.schema.table import Tag
from perfcast.utils.errors import UserError

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
    LOOKED_UP: "a fact of the CPU model, from the catalog or its family",
    MEASURED: "all measured results of the CPU model, or of the task, have it",
    IMPLIED: "follows from other values of the machine",
    ASSUMED: "usual: most recent measured machines of the kind have it",
    MISSING: "unknown",
}
"""Origins of a value and their meaning."""


_NAMES = np.array(list(ORIGINS), dtype=object)
_CODES = {origin: code for code, origin in enumerate(ORIGINS)}


@dataclass(frozen=True)
class CompletedMachines:
    """Batch of machines by task with every standard column.

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
        return np.asarray(np.isin(self.codes, [_CODES[origin] for origin in origins]))

    def take(self, rows: np.ndarray) -> CompletedMachines:
        """Return some rows, by their numbers (m,) int."""
        return CompletedMachines(self.cells.take(rows), self.codes[rows])


def impute(machines: ParsedMachines, champion: Champion, *, assume: bool = True) -> CompletedMachines:
    """Fill missing cells; given cells stay. A machine without a task stands once for every task.

    In this order: facts of the CPU model, values that all measured rows of the model have, values that the row implies,
    values that all measured rows of the task have, and, with `assume`, usual values and what they imply.

    Raises: UserError for an unknown task or a machine that breaks a limit of the dataset's rules.
    """
    steps = _impute_possible(machines, champion)
    return _assume(steps, champion, assume=assume)


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
    """Fill missing cells as `impute`, but draw what must be assumed jointly from measured set-ups, several times.

    What identifies a machine is drawn once for all of its tasks. A machine without a missing cell, and one of a dataset
    without rules of draws, has one draw. Raises: see `impute`.
    """
    steps = _impute_possible(machines, champion)
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
    """Fill the missing cells of draws whose cells were changed, as `impute` does."""
    steps = Steps(drawn.completed.cells, drawn.completed.codes)
    _fill_known(steps, champion)
    steps.take(_fill_common(steps.cells, champion.reference_data, Tag.TASK), MEASURED)
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
            codes[:, place] = _CODES[GIVEN]
        elif name in per_unit and name in cleared and codes[0, place] != _CODES[GIVEN]:
            factors = [given.get(unit, cells[unit]) / cells[unit] for unit in per_unit[name]]
            changed[name] = np.maximum(np.rint(column * np.prod(factors, axis=0)), np.minimum(column, 1.0))
        else:
            unsure = np.full(count, name in cleared) | (codes[:, place] == _CODES[IMPLIED])
            if given and unsure.any():
                changed[name] = mask_cells(column, unsure)
                codes[unsure, place] = _CODES[MISSING]
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
        missing = is_missing(machines.cells[name])
        if not missing.any() or len(missing) < 2:
            continue
        drawn = impute_draws(machines, champion)
        counts = pd.Series(drawn.weights).groupby(drawn.completed.cells[name]).sum().sort_values(ascending=False)
        measured = pd.Series(champion.reference_data.column(name)).value_counts()
        for value in dict.fromkeys([*counts.index, *measured.index]):
            cells = machines.cells.assign({name: np.where(missing, value, machines.cells[name])})
            if not any(champion.rules.find_violations(impute_known(cells, champion).cells)):
                machines = replace(machines, cells=cells)
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


def find_refusals(machines: ParsedMachines, champion: Champion) -> dict[int, UserError]:
    """Return by line (index) the first error of every machine that breaks a limit or names an unknown task."""
    refusals: dict[int, UserError] = {}
    for line, error in list_errors(impute_known(machines.cells, champion).cells, machines, champion):
        refusals.setdefault(line, error)
    return refusals


def find_first_violations(
    machines: ParsedMachines, champion: Champion, completed: Cells | None = None
) -> dict[int, str]:
    """Return by key (index) the first limit that a machine breaks, or its `completed` cells."""
    reasons: dict[int, str] = {}
    cells = impute_known(machines.cells, champion).cells if completed is None else completed
    for violation in champion.rules.find_violations(cells):
        if violation.line not in reasons:
            reasons[violation.line] = ": ".join(name_field(violation, machines, cells, champion))
    return reasons


class Steps:
    """Cells that are filled in steps, with the origin of every one."""

    def __init__(self, cells: Cells, codes: np.ndarray | None = None) -> None:
        self.cells = cells
        self._places = {name: place for place, name in enumerate(cells)}
        if codes is None:
            missing = np.column_stack([is_missing(values) for values in cells.values()])
            codes = np.where(missing, _CODES[MISSING], _CODES[GIVEN]).astype(np.int8)
        self.codes = codes
        self._fills_at_conclusion: dict[str, int] = {}
        self._fills = 0

    def take(self, filled: Cells, origin: str) -> None:
        """Take the result of a step: the same columns, with the known cells unchanged."""
        self.cells, before = filled, self.cells
        for name, values in filled.items():
            if values is before[name]:
                continue
            codes = self.codes[:, self._places[name]]
            new = (codes == _CODES[MISSING]) & ~is_missing(values)
            if new.any():
                codes[new] = _CODES[origin]
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
            cleared = rows & np.isin(codes, [_CODES[origin] for origin in origins])
            if cleared.any():
                self.cells = self.cells.assign({name: mask_cells(self.cells[name], cleared)})
                codes[cleared] = _CODES[MISSING]

    @property
    def completed(self) -> CompletedMachines:
        """The cells with their origins."""
        return CompletedMachines(self.cells, self.codes)

    @property
    def numbered(self) -> Cells:
        """The cells with the number of every row as its index."""
        return Cells(self.cells, np.arange(len(self.cells.index)))

    def has_origin(self, row: int, name: str, origin: str) -> bool:
        """Return whether a cell has an origin."""
        return bool(self.codes[row, self._places[name]] == _CODES[origin])

    def replace(self, row: int, changed: Mapping[str, np.ndarray]) -> None:
        """Replace cells of one row, given as columns of one cell, and keep their origins."""
        selected = np.arange(len(self.codes)) == row
        self.cells = self.cells.assign(
            {name: np.where(selected, values, self.cells[name]) for name, values in changed.items()}
        )

    def repeat(self, rows: np.ndarray) -> None:
        """Repeat rows, (m,) int of row numbers."""
        self.cells, self.codes = self.cells.take(rows), self.codes[rows]


def _impute_possible(machines: ParsedMachines, champion: Champion) -> Steps:
    """Fill what need not be assumed, for every task. Raises: UserError for a machine that breaks a limit."""
    steps = impute_known(machines.cells, champion)
    for _, error in list_errors(steps.cells, machines, champion):
        raise error
    _repeat_by_task(steps, champion)
    return steps


def impute_known(cells: Cells, champion: Champion) -> Steps:
    """Fill what does not depend on the task: facts of the CPU model, and what a row implies."""
    steps = Steps(cells.complete(champion.reference_data.cell_types))
    _fill_known(steps, champion)
    return steps


def _fill_known(steps: Steps, champion: Champion) -> None:
    reference_data, rules = champion.reference_data, champion.rules
    steps.take(rules.fill_entity_facts(steps.cells, reference_data.facts_by_model), LOOKED_UP)
    steps.take(_fill_common(steps.cells, reference_data, Tag.ENTITY), MEASURED)
    steps.conclude(rules.fill_implied, IMPLIED)


def _repeat_by_task(steps: Steps, champion: Champion) -> None:
    """Repeat machines by task, and fill what all measured rows of the task have."""
    task = champion.reference_data.measured.column_of(Tag.TASK)
    tasks = [champion.tasks if name is None else [name] for name in steps.cells[task].tolist()]
    steps.repeat(np.repeat(np.arange(len(tasks)), [len(names) for names in tasks]))
    steps.take(steps.cells.assign({task: np.array([name for names in tasks for name in names], dtype=object)}), GIVEN)
    steps.take(_fill_common(steps.cells, champion.reference_data, Tag.TASK), MEASURED)


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


def _fill_common(cells: Cells, reference_data: ReferenceData, tag: Tag) -> Cells:
    """Fill missing features of the tagged column's group with the value that all its measured rows have."""
    values = cells[reference_data.measured.column_of(tag)].tolist()
    common = {value: reference_data.find_common_values(tag, value) for value in dict.fromkeys(values) if value}
    candidates = {}
    for name in dict.fromkeys(name for known in common.values() for name in known):
        facts = [common.get(value, {}).get(name) for value in values]
        candidates[name] = np.array(facts, dtype=cells[name].dtype)
    return fill_missing(cells, candidates)
