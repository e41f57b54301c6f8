"""Variants of a machine: combinations of varied values, with everything else that stays constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.decisions.varied_fields import Point, VariedField, combinations
from perfcast.inference.champion import Champion
from perfcast.inference.draw_predictions import complete_machines
from perfcast.inference.impute import (
    ASSUMED,
    GIVEN,
    IMPLIED,
    LOOKED_UP,
    MEASURED,
    MISSING,
    find_first_violations,
)
from perfcast.inference.machine_fields import Cell, TypedField
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachines, check_design, parse_machines
from perfcast.schema.table import Role, Tag
from perfcast.utils.errors import UserError

_FACTS = (LOOKED_UP, MEASURED)


@dataclass(frozen=True)
class Variant:
    """One combination: its values, and its lines by task, or the reason why it is impossible.

    `base_cpu`: the CPU model whose facts a hypothetical one has, "" for a real one.
    """

    points: tuple[Point, ...]
    lines: tuple[int, ...] = ()
    violation: str = ""
    base_cpu: str = ""


@dataclass(frozen=True)
class Variants:
    """All combinations, and the possible ones as machines: a line for every combination and task."""

    variants: tuple[Variant, ...]
    machines: ParsedMachines
    tasks: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Base:
    """Machine before anything is varied, with a CPU model: cells and origins by task, or why it is impossible."""

    cpu: str
    cells: tuple[Mapping[str, Any], ...] = ()
    origins: tuple[Mapping[str, str], ...] = ()
    violation: str = ""


class _Dependencies:
    """Dependencies between columns: facts of a CPU model, and columns that follow from others."""

    def __init__(self, champion: Champion) -> None:
        measured = champion.reference_data.measured
        self.cpu, self.task = measured.column_of(Tag.ENTITY), measured.column_of(Tag.TASK)
        group = next(column.group for column in measured.columns if column.name == self.cpu)
        self.facts = set(measured.select(group=group))
        self.keys = set(measured.select(role=Role.KEY, group=group))
        self.rules = champion.rules

    def find_derived(self, varied: set[str], origins: Mapping[str, str]) -> set[str]:
        """Return the columns that are derived anew when others are varied."""
        replaced = {name for column in varied for name in self.rules.replaced.get(column, ())}
        adapted = {name for column in varied for name in self.rules.adapted.get(column, ())}
        for block in self.rules.blocks:
            # known facts of a CPU model stay constant, so its other columns are not imputed again
            if (varied - self.facts) & set(block.columns):
                adapted |= {name for name in block.columns if origins.get(name) == ASSUMED} - self.facts
        return replaced | {name for name in adapted if origins.get(name) != GIVEN}

    def find_contradicted(self, cells: Mapping[str, Cell], base: _Base) -> set[str]:
        """Return the columns in which cells differ from the facts of the base's CPU model."""
        known = {
            name: base.cells[0][name]
            for name, origin in base.origins[0].items()
            if origin in _FACTS and name in self.facts
        }
        other = {name for name, cell in cells.items() if name in known and cell != known[name]}
        return other | {
            name
            for name, capacity in self.rules.capacities.items()
            if name in cells and capacity in known and cells[name] > known[capacity]
        }


def make_variants(
    entry: MachineEntry,
    varied: Sequence[VariedField],
    champion: Champion,
    tasks: Sequence[str] = (),
    *,
    assume: bool = True,
) -> Variants:
    """Make every combination of a machine, for the tasks, else for its own, else for all.

    The machine is completed first, once for every varied CPU model, and its cells then stay constant in all
    combinations. Only the varied columns change, and the columns that the imputation rules derive from them
    (`replaced`, `adapted`, and values that were imputed together with them). A combination that contradicts the CPU
    model has a hypothetical one with its other facts; every other one is the real machine, so that a combination does
    not change with the others in the list. Raises: UserError when the machine itself cannot be used.
    """
    dependencies = _Dependencies(champion)
    columns = {column for field in varied for column in field.columns}
    if dependencies.task in columns:
        name = next(field.name for field in varied if dependencies.task in field.columns)
        fact = f"--vary names {name}"
        raise UserError("a task cannot be varied", fact, "name it with --task, which may be repeated")
    for field in varied:
        for point in field.points:
            typed = {column: TypedField(field.name, point.text) for column in point.cells}
            check_design(point.cells, typed, champion, "--vary")
    cpu_points = [point for field in varied if dependencies.cpu in field.columns for point in field.points]
    optional: list[Point | None] = [*cpu_points] or [None]
    machines = [_parse_base(entry, varied, point, champion, dependencies) for point in optional]
    own_tasks = machines[0].frame[dependencies.task].dropna().tolist()
    all_tasks = tuple(tasks or own_tasks or champion.tasks)
    bases = [_complete_base(machine, all_tasks, champion, dependencies, assume=assume) for machine in machines]
    contradicted: dict[str, set[str]] = {}
    rows: list[dict[str, Any]] = []
    typed_fields: dict[int, Mapping[str, TypedField]] = {}
    variants = []
    for combination in combinations(varied):
        number = cpu_points.index(next(p for p in combination if dependencies.cpu in p.cells)) if cpu_points else 0
        base = bases[number]
        cells = {name: cell for point in combination for name, cell in point.cells.items() if name != dependencies.cpu}
        typed = {
            **next(iter(machines[number].typed.values()), {}),
            **{name: TypedField(f.name, p.text) for f, p in zip(varied, combination, strict=True) for name in p.cells},
        }
        begin = len(rows)
        differing = set() if base.violation else dependencies.find_contradicted(cells, base)
        hypothetical = bool(differing)
        if hypothetical:
            contradicted[base.cpu] = contradicted.get(base.cpu, set()) | differing
        for own_cells, origins in zip(base.cells, base.origins, strict=True):
            row = _constant(own_cells, origins, columns, dependencies, hypothetical=hypothetical) | cells
            champion.rules.check_names(row, typed, "--vary")
            rows.append(row)
            typed_fields[len(rows) - 1] = typed
        base_cpu = base.cpu if hypothetical else ""
        variants.append(Variant(combination, tuple(range(begin, len(rows))), base.violation, base_cpu))
    batch = ParsedMachines(champion.fields.stack(rows, range(len(rows))), typed=typed_fields)
    reasons = find_first_violations(batch, champion) if rows else {}
    violations = [
        each.violation or next((reasons[line] for line in each.lines if line in reasons), "") for each in variants
    ]
    checked = tuple(
        replace(variant, lines=(), violation=reason) if reason else variant
        for variant, reason in zip(variants, violations, strict=True)
    )
    notes = dict.fromkeys(note for machine in machines for lines in machine.notes.values() for note in lines)
    return Variants(
        checked,
        batch.take(np.array([line for variant in checked for line in variant.lines], dtype=int)),
        all_tasks,
        (*notes, *(_note_hypothetical(cpu, names, varied) for cpu, names in contradicted.items())),
    )


def _parse_base(
    entry: MachineEntry,
    varied: Sequence[VariedField],
    cpu: Point | None,
    champion: Champion,
    dependencies: _Dependencies,
) -> ParsedMachines:
    """Parse the machine without the varied fields, with one of the varied CPU models."""
    line, label, values = entry[:3]
    fields, rules = champion.fields, champion.rules
    columns = {column for field in varied for column in field.columns}
    varied_fields = [fields.find(field.name, "--vary") for field in varied]
    constant: dict[str, object] = {}
    for name, value in values.items():
        cells = fields.cells({name: value}, label)
        if fields.find(name, label) not in varied_fields and not (cells and set(cells) <= columns):
            constant[name] = value
    if cpu is not None:
        constant[next(field.name for field in varied if dependencies.cpu in field.columns)] = cpu.text
    first: dict[str, object] = {
        field.name: field.points[0].text for field in varied if dependencies.cpu not in field.columns
    }
    stated = {fields.find(name, label).name: value for name, value in values.items()}
    first = {name: stated.get(fields.find(name, "--vary").name, text) for name, text in first.items()}
    try:
        machines = parse_machines([MachineEntry(line, label, constant)], champion)
        known = machines.frame[dependencies.cpu].iloc[0] in champion.cpu_names.keys
    except UserError:
        known = False
    if not known:
        # the varied fields may describe a new CPU model: values are then imputed for the described machine, or for
        # the first combination where it leaves the varied fields out
        machines = parse_machines([MachineEntry(line, label, constant | first)], champion)
    whole = fields.stack([fields.cells(values, label)], [line]).to_frame()
    per_chip = rules.give_per_chip(whole)
    changed = [name for name in per_chip if name not in columns and not per_chip[name].equals(whole[name])]
    return machines.with_frame(machines.frame.assign(**{str(name): per_chip[name].to_numpy() for name in changed}))


def _complete_base(
    machine: ParsedMachines, tasks: Sequence[str], champion: Champion, dependencies: _Dependencies, *, assume: bool
) -> _Base:
    """Complete the machine for every task."""
    key = machine.frame[dependencies.cpu].iloc[0]
    cpu = "" if pd.isna(key) else str(key)
    reasons = find_first_violations(machine, champion)
    if reasons:
        return _Base(cpu, violation=next(iter(reasons.values())))
    repeated = machine.frame.iloc[[0] * len(tasks)].reset_index(drop=True)
    by_task = ParsedMachines.from_frame(repeated.assign(**{dependencies.task: list(tasks)}))
    completed = complete_machines(by_task, champion, assume=assume)
    cells, origins = ([dict(row) for _, row in frame.iterrows()] for frame in (completed.frame, completed.origins))
    return _Base(cpu, tuple(cells), tuple(origins))


def _constant(
    cells: Mapping[str, Any],
    origins: Mapping[str, str],
    varied: set[str],
    dependencies: _Dependencies,
    *,
    hypothetical: bool,
) -> dict[str, Any]:
    """Return the cells that stay constant; a `hypothetical` CPU model has no key."""
    dropped = varied - {dependencies.cpu} | dependencies.find_derived(varied, origins)
    if hypothetical:
        capacities = dependencies.rules.capacities
        dropped |= dependencies.keys | {capacity for name, capacity in capacities.items() if name in varied}
    return {
        name: cell for name, cell in cells.items() if name not in dropped and origins[name] not in (IMPLIED, MISSING)
    }


def _note_hypothetical(cpu: str, contradicted: set[str], varied: Sequence[VariedField]) -> str:
    names = [field.name for field in varied if field.columns & contradicted]
    return (
        f"{cpu} has its own {' and '.join(names)}: a machine with another one has a hypothetical CPU model like it, "
        "with its other facts"
    )
