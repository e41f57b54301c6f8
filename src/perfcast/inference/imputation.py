"""Imputation of machines of which some cells are not given."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perfcast.inference.cells import ASSUMED, GIVEN, IMPLIED, MEASURED, CompletedMachines
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachines, parse_batch, stack_machines
from perfcast.inference.typical import adopt_typical, complete_usual, find_typical, find_usual, list_keys
from perfcast.schema.table import Tag

MAX_KINDS = 21
"""Most kinds that a machine may be of: an instance runs on one of several hosts."""
_BATCH_SIZE = 500
"""Machines whose typical machines are made together, so that many fit in memory."""


@dataclass(frozen=True)
class ImputedMachines:
    """Machines by task with every cell that can be filled; one that may be of several kinds has a row for each.

    Shapes: `completed` has k rows; `owners` (k,) are the numbers of the machines by task, from 0; `weights` (k,) are
    shares that sum to 1 per machine. `usual` (k, columns) bool marks the given cells that would have been assumed: they
    say no more than an assumption. `months` (k,) are those of the measurements, NaT where none is known.
    """

    completed: CompletedMachines
    owners: np.ndarray
    weights: np.ndarray
    usual: np.ndarray
    months: np.ndarray


def impute_machines(
    machines: ParsedMachines,
    champion: Champion,
    when: pd.Series | pd.Timestamp | None = None,
    *,
    assume: bool = True,
    of_one_kind: bool = False,
) -> ImputedMachines:
    """Fill missing cells: what must be assumed is that of the typical machine, see `find_typical`.

    A machine without a task stands once for every task. In this order: what the batch knows, values that all measured
    rows of the task have, and, with `assume`, those of the typical machine, usual values and what they imply; given
    cells stay.
    Args: `when` is the month of the measurement, or that of every machine, (n,), see `Champion.find_month`; the set-up
    is of this month, see `JointDeck.date`. Machines `of_one_kind` are not repeated by the kinds that they may be.
    """
    steps, task = CompletedMachines(machines.known.cells, machines.known.codes, IMPLIED), champion.task
    tasks = [champion.tasks if name is None else [name] for name in steps.cells[task].tolist()]
    by_task = np.repeat(np.arange(len(tasks)), [len(names) for names in tasks])
    steps.repeat(by_task)
    steps.fill(steps.cells.assign({task: np.array([name for names in tasks for name in names], dtype=object)}), GIVEN)
    steps.fill(champion.reference_data.fill_common(steps.cells, Tag.TASK), MEASURED)
    owners = np.arange(len(by_task)) if of_one_kind else _repeat_by_kind(steps, champion)
    dates = when.iloc[by_task[owners]] if isinstance(when, pd.Series) else champion.find_month(when)
    if assume and dates is not None:
        steps.fill(champion.rules.typical_values.fill_date(steps.cells, dates), ASSUMED)
    usual = np.zeros(steps.codes.shape, dtype=bool)
    deck = champion.joint_deck
    if assume and deck is not None and len(owners):
        steps.fill(deck.date(steps.cells, dates), ASSUMED)
        typical_machines = find_typical(steps, champion, deck)
        usual = find_usual(steps, typical_machines)
        adopt_typical(steps, typical_machines, champion, deck)
    if assume:
        complete_usual(steps, champion)
    weights = 1 / np.bincount(owners)[owners] if len(owners) else np.zeros(0)
    months = np.full(len(steps.codes), np.datetime64("NaT", "us"))
    if dates is not None:
        months[:] = pd.Series(dates).to_numpy("datetime64[us]")
    joint = champion.rules.typical_values.joint
    launch = joint.launch if joint else ""
    if when is None and launch in steps.cells:
        months = np.fmax(months, steps.cells[launch])
    return ImputedMachines(steps, owners, weights, usual, months)


def _repeat_by_kind(steps: CompletedMachines, champion: Champion) -> np.ndarray:
    """Repeat machines by task for each kind that they may be, with its facts, and return their numbers, (rows,) int.

    What few known facts imply may differ by kind.
    """
    typical_values = champion.rules.typical_values
    counts = np.minimum(typical_values.count_variants(steps.cells), MAX_KINDS)
    owners = np.repeat(np.arange(len(counts)), counts)
    if (counts > 1).any():
        steps.repeat(owners)
        numbers = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]
        numbers = np.where(counts[owners] > 1, numbers, -1)
        steps.clear(numbers >= 0, list(steps.cells), IMPLIED)
        facts = champion.reference_data.facts_by_model
        steps.fill(typical_values.fill_variant(steps.cells, numbers, facts), ASSUMED)
        steps.conclude(typical_values.fill_implied, IMPLIED)
    return owners


def hold_equal(machines: ParsedMachines, champion: Champion) -> tuple[ParsedMachines, tuple[str, ...]]:
    """Return machines to compare, and notes: those that do not state a column of `held_equal` have one value of it.

    It is the one most often stated or assumed for them among those that break no limit of any; without such a value the
    column stays as it is.
    """
    notes: list[str] = []
    for name in champion.rules.typical_values.held_equal:
        parsed = [machines.machines[key] for key in machines.keys]
        missing = [name not in machine.cells for machine in parsed]
        if not any(missing) or len(missing) < 2:
            continue
        imputed = impute_machines(machines, champion)
        counts = pd.Series(imputed.weights).groupby(imputed.completed.cells[name]).sum().sort_values(ascending=False)
        measured = pd.Series(champion.reference_data.column(name)).value_counts()
        for value in dict.fromkeys([*counts.index, *measured.index]):
            stated = [replace(each, cells={name: value, **each.cells}) for each in parsed]
            held = stack_machines(stated, champion, expand=False)
            if not held.refusals:
                machines = replace(held.with_keys(machines.keys), refusals=machines.refusals)
                notes.append(f"{name}: {value} is assumed for all candidates that state none")
                break
        else:
            notes.append(f"{name}: no value is possible for all candidates, so each has its own")
    return machines, tuple(notes)


def tabulate_typical(champion: Champion) -> pd.DataFrame | None:
    """Return the typical machines of the measured entities as a table, see `TypicalMachines`.

    Those of its base are measured as well. None without rules that tell what names a machine, and without any machine.
    """
    deck = champion.joint_deck
    if deck is None or not deck.rules.keys:
        return None
    entities = champion.measured_entities
    if champion.base is not None:
        entities |= champion.base.champion.measured_entities
    entries = [MachineEntry(line, name, {champion.named_field: name}) for line, name in enumerate(sorted(entities))]
    parsed = parse_batch(entries, champion)
    columns = champion.reference_data.measured.columns
    keys = list_keys(champion, deck)
    named = [column.name for column in columns if column.name in keys]
    tables = []
    for start in range(0, len(parsed.keys), _BATCH_SIZE):
        impute_machines(parsed.take(np.arange(start, min(start + _BATCH_SIZE, len(parsed.keys)))), champion)
        tables.append(champion.typical_machines.tabulate(columns, named))
    made = [table for table in tables if table is not None]
    return pd.concat(made, ignore_index=True) if made else None
