"""Typical machines: what is assumed of a machine of which some cells are not given.

A typical machine is a set-up that was measured. Its donors are drawn in proportion to their likeness; of these set-ups,
the typical one is that whose prediction is nearest to the median of all. So one machine answers for many, and it is a
function of what names a machine: nothing else that is given changes it.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    is_missing,
    list_rows,
    mask_cells,
)
from perfcast.inference.champion import Champion
from perfcast.inference.donors import DONORS, JointDeck
from perfcast.inference.parse import fill_facts
from perfcast.inference.typical_table import Identity, join_machines
from perfcast.schema.table import Tag


def find_typical(steps: CompletedMachines, champion: Champion, deck: JointDeck) -> CompletedMachines:
    """Return the typical machine of each machine by task, with the same rows.

    All tasks of a machine have the same hardware, and each its software. The hardware of a bridged champion's machine
    is that of its base.
    """
    identified, numbers, identities = _identify(steps, champion, deck)
    known = champion.typical_machines
    known.make_room(len(identities))
    new = [place for place, identity in enumerate(identities) if identity not in known]
    if new:
        made = _make_typical(identified.take(np.array(new)), champion, deck)
        known.add([identities[place] for place in new], made)
    places = {task: place for place, task in enumerate(champion.tasks)}
    of_task = np.array([places[str(task)] for task in steps.cells[champion.task].tolist()], dtype=int)
    joined = join_machines([known[identity] for identity in identities])
    return joined.take(numbers * len(places) + of_task)


def _identify(
    steps: CompletedMachines, champion: Champion, deck: JointDeck
) -> tuple[CompletedMachines, np.ndarray, list[Identity]]:
    """Return machines of which their identity alone is given, with the facts of their entities, each identity once.

    Returns: these machines, without a task; the number of that of every row, (n,) int; and their identities.
    """
    keys = list_keys(champion, deck)
    is_key = np.array([name in keys for name in steps.cells])
    is_taken = np.array([name in deck.rules.taken for name in steps.cells])
    cleared = steps.has_origin(GIVEN, IMPLIED, MEASURED) | (steps.has_origin(ASSUMED) & is_taken)
    cleared &= ~is_key
    cells = {name: mask_cells(values, cleared[:, place]) for place, (name, values) in enumerate(steps.cells.items())}
    codes = np.where(cleared, CODES[MISSING], steps.codes).astype(np.int8)
    cells = dict(deck.limit_days(Cells(cells, steps.cells.index)))
    listed: list[Identity] = list_rows(cells, [name for name in cells if name in keys])
    # such as the facts of one host of an instance
    is_assumed = codes == CODES[ASSUMED]
    for place, name in enumerate(cells):
        rows = np.flatnonzero(is_assumed[:, place] & ~is_key[place]).tolist()
        for row, value in zip(rows, cells[name][rows].tolist(), strict=True):
            listed[row] = (*listed[row], (name, value))
    places: dict[Identity, int] = {}
    numbers = np.array([places.setdefault(identity, len(places)) for identity in listed], dtype=int)
    first = np.unique(numbers, return_index=True)[1]
    identified = CompletedMachines(Cells(cells, np.arange(len(codes))), codes).take(first)
    typical_values = champion.rules.typical_values
    fill_facts(identified, champion)
    identified.conclude(typical_values.fill_implied, IMPLIED)
    # what names an unknown entity, and limits it, comes before its set-up, so that it may be typed back as well
    for block in typical_values.blocks:
        naming = [name for name in block.columns if name in _list_first(champion, deck)]
        if naming:
            filled = champion.hot_deck.fill(identified.cells, block)
            identified.fill(identified.cells.assign({name: filled[name] for name in naming}), ASSUMED)
            identified.conclude(typical_values.fill_implied, IMPLIED)
    return identified, numbers, list(places)


def list_keys(champion: Champion, deck: JointDeck) -> set[str]:
    """Return the columns that name a machine."""
    columns = [column.name for column in champion.reference_data.measured.columns]
    naming = deck.rules.keys or [name for name in columns if name not in deck.rules.taken]
    return {*naming, champion.entity} - {champion.task}


def _list_first(champion: Champion, deck: JointDeck) -> list[str]:
    """Return the columns that are assumed before a set-up: those of blocks that name a machine, or limit it."""
    first = list_keys(champion, deck).union(*deck.rules.at_most.values())
    first &= {column.name for column in champion.reference_data.measured.columns}
    return [name for name in champion.rules.typical_values.block_columns if name in first]


def _make_typical(machines: CompletedMachines, champion: Champion, deck: JointDeck) -> CompletedMachines:
    """Return the typical machines of machines without a task, machine by machine, each once for every task."""
    count, tasks = len(machines.codes), champion.tasks
    by_task = machines.take(np.repeat(np.arange(count), len(tasks)))
    everywhere = np.full(count * len(tasks), True)
    by_task.give(champion.task, everywhere, np.array(list(tasks) * count, dtype=object))
    by_task.fill(champion.reference_data.fill_common(by_task.cells, Tag.TASK), MEASURED)
    if champion.base is not None:
        excluded = {champion.task, deck.rules.day, *deck.rules.software}
        by_task.fill(champion.base.fill_typical(by_task, excluded), ASSUMED)
    # (machines by task, DONORS) by column
    software = deck.donate(by_task.cells, software=True)
    medians = np.full(count * len(tasks), np.nan)
    lacking = np.flatnonzero(deck.lacks_hardware(by_task.cells).reshape(count, -1).any(axis=1))
    if len(lacking):
        hardware = deck.donate(machines.cells.take(lacking))
        rows = (lacking[:, None] * len(tasks) + np.arange(len(tasks))).ravel()
        setups = {name: np.repeat(values, len(tasks), axis=0) for name, values in hardware.items()}
        setups |= {name: values[rows] for name, values in software.items()}
        logs, _ = _predict_setups(champion, by_task.take(rows), setups)
        medians[rows] = _find_medians(logs)
        # the hardware whose predictions of all tasks are nearest to their medians, each with software of its own
        gaps = _measure_gaps(logs, medians[rows]).reshape(len(lacking), len(tasks), DONORS).sum(axis=1)
        nearest = gaps.argmin(axis=1)[:, None]
        chosen = {name: np.take_along_axis(values, nearest, axis=1).ravel() for name, values in hardware.items()}
        filled = {name: by_task.cells[name].copy() for name in chosen}
        for name, values in filled.items():
            values[rows] = np.where(is_missing(values[rows]), np.repeat(chosen[name], len(tasks)), values[rows])
        by_task.fill(by_task.cells.assign(filled), ASSUMED)
    logs, completed = _predict_setups(champion, by_task, software)
    medians = np.where(np.isnan(medians), _find_medians(logs), medians)
    nearest = _measure_gaps(logs, medians).argmin(axis=1)
    return completed.take(np.arange(len(by_task.codes)) * DONORS + nearest)


def _find_medians(logs: np.ndarray) -> np.ndarray:
    """Return the medians of the predictions of possible set-ups, (n,), NaN without any. Shapes: logs (n, DONORS)."""
    return np.asarray(pd.DataFrame(np.where(np.isfinite(logs), logs, np.nan)).median(axis=1))


def _measure_gaps(logs: np.ndarray, medians: np.ndarray) -> np.ndarray:
    """Return how far predictions are from their medians, large for set-ups that break a limit. Shapes: (n, DONORS)."""
    return np.asarray(np.nan_to_num(np.abs(logs - medians[:, None]), nan=0.0, posinf=1e3))


def _predict_setups(
    champion: Champion, by_task: CompletedMachines, donated: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, CompletedMachines]:
    """Return the logarithms of the predictions of set-ups, (n, DONORS), and the set-ups.

    Of a set-up that breaks a limit, the logarithm is infinite. Equal set-ups are predicted once.
    Args: `donated` has the columns of donors, (n, DONORS).
    """
    rows = np.repeat(np.arange(len(by_task.codes)), DONORS)
    filled = {name: values.ravel() for name, values in donated.items()}
    codes = [rows, *(pd.factorize(values)[0] for values in filled.values())]
    _, first, numbers = np.unique(np.column_stack(codes), axis=0, return_index=True, return_inverse=True)
    numbers = numbers.ravel()
    steps = by_task.take(rows[first])
    steps.cells = Cells(steps.cells, np.arange(len(first)))
    steps.fill(fill_missing(steps.cells, {name: values[first] for name, values in filled.items()}), ASSUMED)
    steps.conclude(champion.rules.typical_values.fill_implied, IMPLIED)
    impossible = np.zeros(len(first), dtype=bool)
    impossible[[violation.line for violation in champion.rules.limits.find_violations(steps.numbered)]] = True
    complete_usual(steps, champion)
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted = champion.rules.limits.predict_logs(steps.cells, champion.predict_logs)
    # the first output that the task has
    place = np.isfinite(predicted).argmax(axis=1)
    logs = np.take_along_axis(predicted, place[:, None], axis=1).ravel()[numbers].reshape(-1, DONORS)
    is_left_out = impossible[numbers].reshape(-1, DONORS)
    # where every set-up of a machine breaks a limit, none is left out
    is_left_out &= ~np.logical_and.reduce(is_left_out, axis=1)[:, None]
    return np.where(is_left_out, np.inf, logs), steps.take(numbers)


def change_setups(completed: CompletedMachines, champion: Champion) -> Cells | None:
    """Return completed machines with what is assumed as each of their donors has it, DONORS rows each.

    None without rules of typical machines.
    """
    deck = champion.joint_deck
    if deck is None:
        return None
    identified, numbers, _ = _identify(completed, champion, deck)
    identified = identified.take(numbers)
    tasks = completed.cells[champion.task]
    identified.give(champion.task, np.full(len(tasks), True), tasks)
    is_assumed = np.repeat(completed.has_origin(ASSUMED), DONORS, axis=0)
    cells = completed.cells.take(np.repeat(np.arange(len(numbers)), DONORS))
    changed = {}
    donor_cells = deck.donate(identified.cells) | deck.donate(identified.cells, software=True)
    for name, values in donor_cells.items():
        donated = values.ravel()
        taken = is_assumed[:, completed.places[name]] & ~is_missing(donated)
        changed[name] = np.where(taken, donated, cells[name])
    return cells.assign(changed)


def find_usual(steps: CompletedMachines, typical_machines: CompletedMachines) -> np.ndarray:
    """Return which given cells are those that the typical machine has by assumption, (n, columns) bool."""
    usual = steps.has_origin(GIVEN) & typical_machines.has_origin(ASSUMED)
    for place, (name, values) in enumerate(steps.cells.items()):
        if usual[:, place].any():
            usual[:, place] &= values == typical_machines.cells[name]
    return np.asarray(usual)


def adopt_typical(
    steps: CompletedMachines, typical_machines: CompletedMachines, champion: Champion, deck: JointDeck
) -> None:
    """Fill the missing cells of machines from their typical machines, as what is given allows."""
    steps.fill(deck.adopt(steps.cells, typical_machines.cells), ASSUMED)
    is_assumed = typical_machines.has_origin(ASSUMED)
    naming = {
        name: mask_cells(typical_machines.cells[name], ~is_assumed[:, typical_machines.places[name]])
        for name in _list_first(champion, deck)
    }
    steps.fill(fill_missing(steps.cells, naming), ASSUMED)
    steps.conclude(champion.rules.typical_values.fill_implied, IMPLIED)
    if deck.rules.replaced:
        _replace_impossible(steps, champion, deck)


def _replace_impossible(steps: CompletedMachines, champion: Champion, deck: JointDeck) -> None:
    """Replace assumed cells that break a limit by the measured set-up that is most frequent among possible ones."""
    find_violations = champion.rules.limits.find_violations
    numbered, is_assumed = steps.numbered, steps.has_origin(ASSUMED)
    for row in sorted({violation.line for violation in find_violations(numbered)}):
        assumed = [name for name in deck.rules.taken if is_assumed[row, steps.places[name]]]
        for setup in deck.frame[assumed].value_counts().index if assumed else ():
            changed = {name: np.array([value], dtype=object) for name, value in zip(assumed, setup, strict=True)}
            if not any(find_violations(numbered.take(np.array([row])).assign(changed))):
                selected = np.arange(len(steps.codes)) == row
                replaced = {name: np.where(selected, values, steps.cells[name]) for name, values in changed.items()}
                steps.cells = steps.cells.assign(replaced)
                break


def complete_usual(steps: CompletedMachines, champion: Champion) -> None:
    """Fill usual values, and what they imply, and clear what breaks a limit."""
    typical_values = champion.rules.typical_values
    for block in typical_values.blocks:
        steps.fill(champion.hot_deck.fill(steps.cells, block), ASSUMED)
        steps.conclude(typical_values.fill_implied, IMPLIED)
        steps.conclude(lambda cells: typical_values.fill_usual(cells, champion.hot_deck.last), ASSUMED)
    # what was implied by few known cells may be another value now, and what was assumed may be implied
    rows = np.ones(len(steps.codes), dtype=bool)
    taken = typical_values.joint.taken if typical_values.joint else ()
    usual = [name for name in typical_values.block_columns if name in steps.cells and name not in taken]
    is_assumed = steps.has_origin(ASSUMED)
    assumed = {name: mask_cells(steps.cells[name], ~is_assumed[:, steps.places[name]]) for name in usual}
    steps.clear(rows, list(steps.cells), IMPLIED)
    steps.clear(rows, usual, ASSUMED)
    steps.fill(typical_values.fill_implied(steps.cells), IMPLIED)
    steps.fill(fill_missing(steps.cells, assumed), ASSUMED)
    steps.fill(typical_values.fill_implied(steps.cells), IMPLIED)
    for violation in list(champion.rules.limits.find_violations(steps.numbered)):
        steps.clear(np.arange(len(steps.codes)) == violation.line, violation.columns, ASSUMED, IMPLIED)
    steps.fill(typical_values.fill_implied(steps.cells), IMPLIED)
