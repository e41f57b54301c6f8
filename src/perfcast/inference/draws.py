"""Draws of partly described machines, and predictions of them: medians, and intervals of the mixture of draws."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.inference.cells import (
    ASSUMED,
    CODES,
    GIVEN,
    IMPLIED,
    MEASURED,
    MISSING,
    Cells,
    CompletedMachines,
    fill_missing,
    mask_cells,
)
from perfcast.inference.champion import Champion
from perfcast.inference.donors import DRAWS, SOFTWARE, JointDeck
from perfcast.inference.parse import ParsedMachines, fill_facts, stack_machines
from perfcast.inference.prediction import Assumption
from perfcast.schema.table import Table, Tag
from perfcast.uncertainty.conformal import LEVEL
from perfcast.uncertainty.levels import ErrorRows, outputs_of
from perfcast.uncertainty.mixture import mixture_quantiles, weighted_medians

_MIN_SPREAD = 5e-4
"""Smallest spread of an assumption that is shown."""


@dataclass(frozen=True)
class DrawnMachines:
    """Draws of a batch of machines by task, machine by machine, with equal draws once.

    Shapes: `completed` has one row per distinct draw, (k,); `owners` (k,) numbers of the machines by task, from 0;
    `weights` (k,) shares that sum to 1 per machine; `shared` (k,) the donor of the columns that all tasks share;
    `other` (k,) the draw of another champion that each follows, -1 for none.
    """

    completed: CompletedMachines
    owners: np.ndarray
    weights: np.ndarray
    shared: np.ndarray
    other: np.ndarray


def impute_draws(
    machines: ParsedMachines,
    champion: Champion,
    when: pd.Series | pd.Timestamp | None = None,
    *,
    assume: bool = True,
    followed: FollowedDraws | None = None,
    shares: np.ndarray | None = None,
) -> DrawnMachines:
    """Fill missing cells, several times: what must be assumed is drawn jointly from measured set-ups.

    A machine without a task stands once for every task. In this order: what the batch knows, values that all measured
    rows of the task have, and, with `assume`, usual values and what they imply; given cells stay. What identifies a
    machine is drawn once for all of its tasks. A machine without a missing cell, and one of a dataset without rules of
    draws, has one draw.
    Args: `when` is the day that the set-ups are of, or the day of every machine, (n,); see `JointDeck.date`. What
    another champion assumed in the `followed` draws is assumed here, but for the day and the software: each dataset
    has those of its own results. A bridged champion follows the draws of its base where none are given.
    Machines that are draws of one share out the draws of the first: `shares` (n, 2) int
    are their number among them and their count.
    """
    if followed is None and shares is None and champion.base is not None and len(machines.known.codes):
        followed = champion.base.follow(machines, when, assume=assume)
    steps, task = CompletedMachines(machines.known.cells, machines.known.codes, IMPLIED), champion.task
    tasks = [champion.tasks if name is None else [name] for name in steps.cells[task].tolist()]
    by_task = np.repeat(np.arange(len(tasks)), [len(names) for names in tasks])
    steps.repeat(by_task)
    steps.fill(steps.cells.assign({task: np.array([name for names in tasks for name in names], dtype=object)}), GIVEN)
    steps.fill(champion.reference_data.fill_common(steps.cells, Tag.TASK), MEASURED)
    of_other = np.full((len(by_task), DRAWS), -1) if followed is None else followed.find(steps.cells, task)
    owners_of = np.arange(len(by_task))
    is_first = np.ones(len(by_task), dtype=bool) if shares is None else shares[:, 0] == 0
    if shares is None:
        owners_of, shares = _mix_variants(steps, champion, of_other[:, 0] >= 0)
        of_other, is_first = of_other[owners_of], is_first[owners_of]
    dates = when.iloc[by_task[owners_of]] if isinstance(when, pd.Series) else when
    if assume and dates is not None:
        steps.fill(champion.rules.fill_date(steps.cells, dates), ASSUMED)
    deck, rows = champion.joint_deck if assume else None, np.arange(len(owners_of))
    if deck is None:
        none = np.full(len(rows), -1)
        weights = 1 / np.bincount(owners_of)[owners_of]
        return DrawnMachines(_assume(steps, champion, assume=assume), owners_of, weights, none, none)
    steps.fill(deck.date(steps.cells, dates), ASSUMED)
    first_cells, machine = steps.cells.take(np.flatnonzero(is_first)), np.cumsum(is_first) - 1
    donor_rows = [
        np.where((of_other < 0) | (part == SOFTWARE), deck.draw(first_cells, part)[machine], -1) for part in deck.parts
    ]
    draws = np.column_stack([np.repeat(rows, DRAWS), *(each.ravel() for each in (of_other, *donor_rows))])
    draws = draws[(np.arange(DRAWS) % shares[:, 1:] == shares[:, :1]).ravel()]
    ordered = draws[np.lexsort(draws.T[::-1])]
    first = np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(ordered)])
    (owners, other, *by_part), counts = ordered[first].T, np.diff(np.append(first, len(ordered)))
    steps.repeat(owners)
    shared = by_part[0]
    if followed is not None:
        steps.fill(followed.fill(steps.cells, other, {task, deck.rules.day, *deck.rules.software}), ASSUMED)
        shared = np.where(other < 0, shared, followed.drawn.shared[other])
    for part, numbers in zip(deck.parts, by_part, strict=True):
        steps.fill(deck.fill(steps.cells, numbers, part), ASSUMED)
    steps.conclude(champion.rules.fill_implied, IMPLIED)
    return _complete_draws(steps, DrawnMachines(steps, owners_of[owners], counts / DRAWS, shared, other), champion)


def _mix_variants(steps: CompletedMachines, champion: Champion, follow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Repeat machines by task for each kind that they may be, with its facts, and return their numbers and shares.

    Machines that `follow` other draws have the kinds of these. What few known facts imply may differ by kind.
    Shapes: `follow` (n,) bool -> (rows,) int and (rows, 2) int, see `impute_draws`.
    """
    possible = np.minimum(champion.rules.count_variants(steps.cells), DRAWS)
    counts = np.where(follow, 1, possible)
    owners = np.repeat(np.arange(len(counts)), counts)
    shares = np.column_stack([np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners], counts[owners]])
    if (possible > 1).any():
        steps.repeat(owners)
        numbers = np.where(shares[:, 1] > 1, shares[:, 0], -1)
        steps.clear(numbers >= 0, list(steps.cells), IMPLIED)
        steps.fill(champion.rules.fill_variant(steps.cells, numbers, champion.reference_data.facts_by_model), ASSUMED)
        steps.conclude(champion.rules.fill_implied, IMPLIED)
        steps.clear(possible[owners] > counts[owners], list(steps.cells), IMPLIED)
    return owners, shares


@dataclass(frozen=True)
class FollowedDraws:
    """Draws of machines by another champion, whose assumptions count: `tasks` has its task by that of this champion."""

    drawn: DrawnMachines
    tasks: Mapping[str, str]

    def find(self, cells: Cells, task: str) -> np.ndarray:
        """Return the draws that those of machines by task follow, evenly by weight, (n, DRAWS) int.

        They are -1 where the other champion drew no machine with the same index and task.
        """
        drawn, middles = self.drawn.completed.cells, (np.arange(DRAWS) + 0.5) / DRAWS
        numbers_of: dict[tuple[int, str], list[int]] = {}
        for number, key in enumerate(zip(drawn.index.tolist(), drawn[task].tolist(), strict=True)):
            numbers_of.setdefault(key, []).append(number)
        numbers_by_row = np.full((len(cells.index), DRAWS), -1)
        for row, (key, name) in enumerate(zip(cells.index.tolist(), cells[task].tolist(), strict=True)):
            if numbers := numbers_of.get((key, self.tasks.get(name, ""))):
                places = np.searchsorted(np.cumsum(self.drawn.weights[numbers]), middles)
                numbers_by_row[row] = np.array(numbers)[np.minimum(places, len(numbers) - 1)]
        return numbers_by_row

    def fill(self, cells: Cells, draws: np.ndarray, excluded: Collection[str]) -> Cells:
        """Return draws with what the other champion measured or assumed, but for `excluded` columns; -1 for no draw."""
        completed = self.drawn.completed
        is_taken = completed.has_origin(ASSUMED, MEASURED)[draws] & (draws >= 0)[:, None]
        taken = {
            name: mask_cells(values[draws], ~is_taken[:, completed.places[name]])
            for name, values in completed.cells.items()
            if name in cells and name not in excluded
        }
        return fill_missing(cells, taken)


def complete_draws(drawn: DrawnMachines, champion: Champion, *, assume: bool = True) -> DrawnMachines:
    """Fill the missing cells of draws whose cells were changed, as `impute_draws` does."""
    steps = CompletedMachines(drawn.completed.cells, drawn.completed.codes)
    fill_facts(steps, champion)
    steps.conclude(champion.rules.fill_implied, IMPLIED)
    steps.fill(champion.reference_data.fill_common(steps.cells, Tag.TASK), MEASURED)
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
    held = [part.completed.cells for part in parts]
    cells = {name: np.concatenate([each[name] for each in held]) for name in held[0]}
    return DrawnMachines(
        CompletedMachines(
            Cells(cells, np.concatenate([each.index for each in held])),
            np.concatenate([part.completed.codes for part in parts]),
        ),
        np.concatenate([part.owners + begin for part, begin in zip(parts, first[:-1], strict=True)]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.shared for part in parts]),
        np.concatenate([part.other for part in parts]),
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


def _complete_draws(
    steps: CompletedMachines, drawn: DrawnMachines, champion: Champion, *, assume: bool = True
) -> DrawnMachines:
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
    weights = weights / np.bincount(owners, weights)[owners]
    return DrawnMachines(completed, owners, weights, drawn.shared[keep], drawn.other[keep])


def _replace_impossible(steps: CompletedMachines, champion: Champion, deck: JointDeck) -> None:
    """Replace assumed cells that break a limit by the measured set-up that is most frequent among possible ones."""
    numbered, is_assumed = steps.numbered, steps.has_origin(ASSUMED)
    for row in sorted({violation.line for violation in champion.rules.find_violations(numbered)}):
        assumed = [name for name in deck.rules.taken if is_assumed[row, steps.places[name]]]
        for setup in deck.frame[assumed].value_counts().index if assumed else ():
            changed = {name: np.array([value], dtype=object) for name, value in zip(assumed, setup, strict=True)}
            if not any(champion.rules.find_violations(numbered.take(np.array([row])).assign(changed))):
                selected = np.arange(len(steps.codes)) == row
                replaced = {name: np.where(selected, values, steps.cells[name]) for name, values in changed.items()}
                steps.cells = steps.cells.assign(replaced)
                break


def _assume(steps: CompletedMachines, champion: Champion, *, assume: bool) -> CompletedMachines:
    """Fill usual values, and what they imply."""
    rules = champion.rules
    if assume:
        for block in rules.blocks:
            steps.fill(champion.hot_deck.fill(steps.cells, block), ASSUMED)
            steps.conclude(rules.fill_implied, IMPLIED)
            steps.conclude(lambda cells: rules.fill_usual(cells, champion.hot_deck.last), ASSUMED)
        # what was implied by few known cells may be another value now
        steps.clear(np.ones(len(steps.codes), dtype=bool), list(steps.cells), IMPLIED)
        steps.fill(rules.fill_implied(steps.cells), IMPLIED)
        for violation in list(rules.find_violations(steps.numbered)):
            steps.clear(np.arange(len(steps.codes)) == violation.line, violation.columns, ASSUMED, IMPLIED)
        steps.fill(rules.fill_implied(steps.cells), IMPLIED)
    return steps


class Mixture(NamedTuple):
    """Logarithms by draw, and their `medians` by owner. Shapes: (k,) each, medians (machines by task,)."""

    logs: np.ndarray
    owners: np.ndarray
    weights: np.ndarray
    medians: np.ndarray


class DrawPredictions:
    """Predictions of a batch of drawn machines.

    Shapes: `medians` (machines by task, targets), NaN where `has_output` is false. `completed` and `table` have the
    draw of every machine to show: that whose prediction of the first target is nearest to the median, among those of
    the donor that is nearest in all tasks. `lowest` and `highest` (machines by task,) are the possible results.
    `impossible` has by row why a machine cannot do its task.
    `unknown` marks the cells of `table` that are missing or follow from assumed ones, (machines by task, columns) bool.
    """

    def __init__(self, drawn: DrawnMachines, champion: Champion) -> None:
        self._drawn, self._champion = drawn, champion
        owners, count = drawn.owners, len(drawn.owners)
        self._first = np.searchsorted(owners, np.arange(owners[-1] + 1)) if len(owners) else np.zeros(0, dtype=int)
        # what is known of a machine is the same in all of its draws; its features are derived with theirs
        first = drawn.completed.take(self._first)
        known, unusual = _clear_assumed(first, champion), _clear_assumed(first, champion, measured=True)
        counts = np.diff(np.append(self._first, count))
        numbers = np.concatenate([np.arange(count) - self._first[owners], np.zeros(2 * len(counts), dtype=int)])
        shares = np.column_stack([numbers, np.concatenate([counts[owners], counts, counts])])
        both = champion.derive_features(drawn.completed.cells.append(known).append(unusual), shares)
        X = both.frame.iloc[:count]

        def predict(cells: Cells) -> np.ndarray:
            if cells is not drawn.completed.cells:
                return champion.predict_logs(cells)
            return np.asarray(np.log(champion.predictor.predict(X).to_numpy(dtype=float)))

        lowest, highest = champion.rules.find_bounds(drawn.completed.cells)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = champion.rules.predict_logs(drawn.completed.cells, predict)
            logs -= champion.rules.find_deductions(drawn.completed.cells, champion.measured_kinds)[:, None]
            self._logs = np.clip(logs, np.log(lowest)[:, None], np.log(highest)[:, None])
        self.lowest = np.minimum.reduceat(lowest, self._first) if len(owners) else lowest
        self.highest = np.maximum.reduceat(highest, self._first) if len(owners) else highest
        logs = np.column_stack([weighted_medians(column, owners, drawn.weights) for column in self._logs.T])
        self.medians = np.exp(logs)
        self._log_medians = logs
        self.has_output = champion.predictor.requested_outputs(X)[self._first]
        first_target = self.has_output.argmax(axis=1)
        gaps = np.abs(np.take_along_axis(self._logs - logs[owners], first_target[owners, None], axis=1).ravel())
        machines = np.unique(drawn.completed.cells.index[self._first], return_inverse=True)[1]
        is_nearest = _find_nearest(gaps, owners, machines[owners], drawn.shared)
        shown = np.lexsort((gaps, ~is_nearest, owners))[self._first]
        self.completed = drawn.completed.take(shown)
        self.impossible = champion.rules.find_impossible(self.completed.cells)
        frame = both.frame.iloc[shown].reset_index(drop=True)
        self.table = Table(both.dataset, frame, both.columns, both.facts)
        differs = _differs(both.frame, np.arange(count, len(both.frame)), np.tile(shown, 2))
        self.unknown, self._usual = differs.iloc[: len(shown)], differs.iloc[len(shown) :]

    @cached_property
    def encoded(self) -> np.ndarray:
        """The rows of `table` as distances read them, see `InDomainModel.encode`; none without a calibration."""
        calibrated = self._champion.calibrated
        return (
            np.zeros((len(self.table.frame), 0))
            if calibrated is None
            else calibrated.in_domain.encode(self.table.frame)
        )

    @cached_property
    def levels(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """By target: what results after training add to the logarithms, and their factor of the widths, (n,) each."""
        known = self._champion.calibrated.known if self._champion.calibrated else None
        targets, count, table = self._champion.predictor.targets_, len(self.table.frame), self.table
        if known is None or not len(known.errors):
            return [(np.zeros(count), np.ones(count))] * len(targets)
        tasks = table.frame[table.column_of(Tag.TASK)]
        return [known.predict(ErrorRows.of(table, outputs_of(tasks, target))) for target in targets]

    def intervals(
        self, target: int, when: pd.Series | None = None, level: float = LEVEL, mixed: Mixture | None = None
    ) -> pd.DataFrame | None:
        """Return the uncertainty of the predictions of a target, None without a calibration.

        Args: `target` is the number of the target, `when` the months of the measurements, index as `table.frame`, by
        default the days of their set-ups; `mixed` has other logarithms than those of the draws.
        Returns: as `UncertaintyModel.intervals`, with `below` and `above` of the mixture, widened by the factor of the
        level of description less 1, times `half_width`, that of a single draw in logarithms. All draws of a machine
        have the errors of the draw that is shown. What is assumed was measured on some machine: it adds no distance to
        the in-domain score, nor does a given value of a set-up that was measured, so what is typed back does not.
        """
        calibrated = self._champion.calibrated
        if calibrated is None:
            return None
        X, mixed = self.table.frame, mixed or self.mix(target)
        deck = self._champion.joint_deck
        if when is None and deck is not None and deck.rules.day in self.completed.cells:
            when = pd.Series(self.completed.cells[deck.rules.day], X.index)
        outputs = outputs_of(X[self.table.column_of(Tag.TASK)], self._champion.predictor.targets_[target])
        deviations = self._champion.predictor.predict_deviations(X)
        known = None if deviations is None else deviations[:, target]
        intervals = calibrated.intervals(X, outputs, when, level, self._usual, encoded=self.encoded, deviations=known)
        below, above = (intervals[name].to_numpy(dtype=float).copy() for name in ("below", "above"))
        half_width = (below + above) / 2
        counts = np.bincount(mixed.owners, minlength=len(X))
        several = (counts > 1) & self.has_output[:, target]
        if several.any():
            rows = several[mixed.owners]
            owners, errors = mixed.owners[rows], intervals["expected_error"].to_numpy()
            quantiles = mixture_quantiles(
                mixed.logs[rows],
                np.cumsum(several)[owners] - 1,
                mixed.weights[rows],
                errors=errors[owners],
                outputs=outputs[owners],
                scores=calibrated.calibration.quantiles,
                levels=((1 - level) / 2, (1 + level) / 2),
            )
            middle = mixed.medians[several]
            below[several] = middle - quantiles[:, 0]
            above[several] = quantiles[:, 1] - middle
        added = (self._find_scales() - 1) * half_width
        kinds = self._champion.measured_kinds
        # at the upper end nothing is deducted
        above += self._champion.rules.find_deductions(self.completed.cells, kinds)
        ends = {"below": np.maximum(below + added, 1e-9), "above": np.maximum(above + added, 1e-9)}
        return intervals.assign(**ends, half_width=half_width)

    def mix(self, target: int) -> Mixture:
        """Return the logarithms of the predictions of a target by draw."""
        drawn = self._drawn
        return Mixture(self._logs[:, target], drawn.owners, drawn.weights, self._log_medians[:, target])

    def rank_assumptions(self, rows: Sequence[int]) -> tuple[Assumption, ...]:
        """Return the fields whose values, assumed in all of some rows, change the predictions, most first."""
        champion, draws = self._champion, np.flatnonzero(np.isin(self._drawn.owners, rows))
        owners, weights = self._drawn.owners[draws], self._drawn.weights[draws, None]
        shown, others = self.completed.take(owners), self._drawn.completed.cells.take(draws)
        fields: dict[str, list[str]] = {}
        for name, is_assumed in zip(shown.cells, np.logical_and.reduce(shown.has_origin(ASSUMED)), strict=True):
            if is_assumed and (shown.cells[name] != others[name]).any():
                fields.setdefault(champion.fields.name_of(name), []).append(name)
        if not fields:
            return ()
        implied = shown.has_origin(IMPLIED)
        known = {name: mask_cells(shown.cells[name], implied[:, place]) for name, place in shown.places.items()}
        changed = [
            champion.rules.fill_implied(shown.cells.assign(known | {name: others[name] for name in names}))
            for names in fields.values()
        ]
        logs = champion.rules.predict_logs(reduce(Cells.append, changed), champion.predict_logs)
        logs, first = logs.reshape(len(fields), len(draws), -1), np.flatnonzero(np.diff(owners, prepend=-1))
        means, squares = (np.add.reduceat(weights * logs**power, first, axis=1) for power in (1, 2))
        spreads = np.sqrt(np.nanmax(squares - means**2, axis=(1, 2), initial=0.0)).tolist()
        ranked = [Assumption(name, tuple(fields[name]), spread) for name, spread in zip(fields, spreads, strict=True)]
        return tuple(sorted((each for each in ranked if each.spread >= _MIN_SPREAD), key=lambda each: -each.spread))

    def _find_scales(self) -> np.ndarray:
        """Return the factor of the half-width of every machine, by its level of description, (machines by task,)."""
        calibrated, levels = self._champion.calibrated, self._champion.description_levels
        count = len(self.completed.codes)
        if calibrated is None or not calibrated.scales or not levels:
            return np.ones(count)
        levels = levels[-len(calibrated.scales) :]  # an older champion has no scale of the lowest ones
        names, given = np.array(list(self.completed.cells), dtype=object), self.completed.has_origin(GIVEN)
        patterns, numbers = np.unique(given, axis=0, return_inverse=True)
        scales = [calibrated.scales[find_level(names[pattern].tolist(), levels) - 1] for pattern in patterns]
        return np.array(scales)[numbers.ravel()]


def complete_machines(machines: ParsedMachines, champion: Champion, *, assume: bool = True) -> CompletedMachines:
    """Return machines by task with the missing cells of the draw that a prediction shows."""
    return DrawPredictions(impute_draws(machines, champion, assume=assume), champion).completed


def _clear_assumed(completed: CompletedMachines, champion: Champion, *, measured: bool = False) -> Cells:
    """Return machines without their assumed cells: implied ones are filled anew from what is known.

    With `measured`, given cells are cleared as well where they could have been assumed: see `find_measured`.
    """
    cells, places = completed.cells, completed.places
    cleared, joint = completed.has_origin(ASSUMED, IMPLIED), champion.rules.joint
    if measured and joint is not None:
        given = completed.has_origin(GIVEN)
        assumable = (*joint.taken, *(name for block in champion.rules.blocks for name in block.columns))
        names = [name for name in dict.fromkeys(assumable) if name in places and given[:, places[name]].any()]
        for name, rows in champion.reference_data.find_measured(cells, names).items():
            bounds = (*joint.at_most.get(name, ()), *([joint.launch] if name in joint.dates else []))
            at_bound = [cells[name] == cells[bound] for bound in bounds if bound in cells]
            cleared[:, places[name]] |= given[:, places[name]] & np.logical_or.reduce([rows, *at_bound])
    masks = {name: cleared[:, place] for name, place in places.items() if cleared[:, place].any()}
    return champion.rules.fill_implied(
        cells.assign({name: mask_cells(cells[name], mask) for name, mask in masks.items()})
    )


def _find_nearest(gaps: np.ndarray, owners: np.ndarray, machines: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return which draws have the donor whose nearest draws of all tasks of a machine have the smallest sum of gaps.

    A donor without a draw of some task comes after those with one. Shapes: (k,) each.
    """
    if not len(gaps):
        return np.zeros(0, dtype=bool)
    _, numbers = np.unique(np.column_stack([machines, shared]), axis=0, return_inverse=True)
    numbers = numbers.ravel()
    order = np.lexsort((gaps, owners, numbers))
    is_first = np.append(True, (np.diff(numbers[order]) != 0) | (np.diff(owners[order]) != 0))
    first = order[is_first]
    sums, counts = np.bincount(numbers[first], gaps[first]), np.bincount(numbers[first])
    machine_of = np.zeros(len(sums), dtype=int)
    machine_of[numbers] = machines
    ranked = np.lexsort((sums, -counts, machine_of))
    chosen = ranked[np.append(True, np.diff(machine_of[ranked]) != 0)]
    return np.asarray(np.isin(numbers, chosen))


def _differs(frame: pd.DataFrame, known: np.ndarray, shown: np.ndarray) -> pd.DataFrame:
    """Return which cells of the known rows are missing, or differ from those of the shown ones, (n, columns) bool."""
    is_number = np.array([dtype == np.float64 for dtype in frame.dtypes])
    unknown = np.empty((len(known), frame.shape[1]), dtype=bool)
    numbers = frame.loc[:, is_number].to_numpy()
    # a missing number equals nothing
    unknown[:, is_number] = numbers[known] != numbers[shown]
    for place in np.flatnonzero(~is_number).tolist():
        values = frame[frame.columns[place]].array
        if isinstance(values, pd.Categorical):
            before, differs = values.codes[known], values.codes[known] != values.codes[shown]
            unknown[:, place] = differs | (before < 0)
        else:
            unknown[:, place] = np.asarray(values[known] != values[shown]) | values[known].isna()
    return pd.DataFrame(unknown, columns=frame.columns)


def find_level(given: Collection[str], levels: Sequence[Collection[str]]) -> int:
    """Return the number, from 1, of the level whose columns agree best with the given ones.

    Agreement is Jaccard's index: columns in both over columns in either. The lower level wins a tie.
    """
    wanted = set(given)
    agreement = [len(wanted & set(columns)) / len(wanted | set(columns)) for columns in levels]
    return 1 + agreement.index(max(agreement))
