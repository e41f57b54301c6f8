"""Variants of a machine: combinations of varied values, with everything else that stays constant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from perfcast.decisions.varied_fields import Point, VariedField, combinations
from perfcast.inference.cells import ASSUMED, GIVEN, IMPLIED, LOOKED_UP, MEASURED, MISSING
from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawnMachines, change_draws, complete_draws, impute_draws, join_draws
from perfcast.inference.machine_fields import Cell, TypedField
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine, check_design, name_violations, parse_machine, stack_machines
from perfcast.schema.table import Role, Tag
from perfcast.utils.errors import UserError

_FACTS = (LOOKED_UP, MEASURED)


@dataclass(frozen=True)
class _Base:
    """Machine before anything is varied, with a CPU model: its draws, or why it is impossible."""

    machine: ParsedMachine
    drawn: DrawnMachines | None = None
    violation: str = ""

    @cached_property
    def cells(self) -> Mapping[str, Any]:
        """The cells of the first draw."""
        return {name: values[0] for name, values in self.drawn.completed.cells.items()} if self.drawn else {}

    @cached_property
    def origins(self) -> Mapping[str, str]:
        """The origins of `cells`."""
        if self.drawn is None:
            return {}
        first = self.drawn.completed.take(np.array([0])).origins.iloc[0]
        return {str(name): str(origin) for name, origin in first.items()}


@dataclass(frozen=True)
class Variant:
    """One combination: its machine, with other cells, (1,) each, and the columns that follow from them anew.

    A combination that is the machine itself has neither. `base_cpu`: the CPU model whose facts a hypothetical one has,
    "" for a real one.
    """

    points: tuple[Point, ...]
    base: _Base
    cells: Mapping[str, np.ndarray] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    base_cpu: str = ""


@dataclass(frozen=True)
class Variants:
    """All combinations of the varied fields, of which there may be one more than those that were asked for."""

    varied: tuple[VariedField, ...]
    variants: tuple[Variant, ...]
    notes: tuple[str, ...]
    champion: Champion

    def draw(self, numbers: np.ndarray, *, assume: bool = True) -> tuple[DrawnMachines | None, dict[int, str]]:
        """Return the draws of some combinations, whose keys are their numbers, and why others are impossible.

        A combination has the draws of its machine: in each of them its own cells change, and those that follow.
        """
        champion, chosen = self.champion, {int(number): self.variants[number] for number in numbers}
        per_unit = champion.rules.joint.per_unit if champion.rules.joint else {}
        reasons = {number: each.base.violation for number, each in chosen.items() if each.base.violation}
        same: list[DrawnMachines] = []
        changed: list[DrawnMachines] = []
        for number, variant in chosen.items():
            if variant.base.drawn is not None:
                machine = change_draws(variant.base.drawn, number, variant.cells, variant.derived, per_unit)
                (changed if variant.cells else same).append(machine)
        if changed:
            varied = complete_draws(join_draws(changed), champion, assume=assume)
            typed = {number: _list_typed(self.varied, each.points, each.base) for number, each in chosen.items()}
            cells = varied.completed.cells
            beyond = name_violations(cells, typed, champion)
            reasons |= beyond
            is_impossible = np.isin(cells.index, list(beyond))
            if not is_impossible.all():
                same.append(varied.take_owners(~is_impossible))
        return join_draws(same) if same else None, reasons


class _Dependencies:
    """Dependencies between columns: facts of a CPU model, and columns that follow from others."""

    def __init__(self, champion: Champion) -> None:
        self.champion, measured = champion, champion.reference_data.measured
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

    def defines_machine(self, field: VariedField, described: Collection[str]) -> bool:
        """Return whether every value of a field is a machine of its own, instead of a change of the described one."""
        return self.cpu in field.columns or bool(field.columns - set(described) & {self.rules.enumerated})

    def find_contradicted(self, cells: Mapping[str, Cell], base: _Base) -> set[str]:
        """Return the columns in which cells differ from the facts of the base's CPU model."""
        known = {
            name: base.cells[name] for name, origin in base.origins.items() if origin in _FACTS and name in self.facts
        }
        other = {name for name, cell in cells.items() if name in known and cell != known[name]}
        return other | {
            name
            for name, capacity in self.rules.capacities.items()
            if name in cells and capacity in known and cells[name] > known[capacity]
        }


def make_variants(
    entry: MachineEntry, varied: Sequence[VariedField], champion: Champion, *, assume: bool = True
) -> Variants:
    """Make every combination of a machine.

    The machine is drawn first, once for every varied CPU model, and its draws then stay constant in all combinations.
    Only the varied columns change, and the columns that the imputation rules derive from them (`replaced`, `adapted`,
    and values that were imputed together with them). A combination that contradicts the CPU model has a hypothetical
    one with its other facts; every other one is the real machine, so that a combination does not change with the others
    in the list. The enumerated column, such as the number of processors, is varied where the machine leaves it out.
    Raises: UserError when the machine itself cannot be used.
    """
    dependencies = _Dependencies(champion)
    if any(dependencies.task in each.columns for each in varied):
        name = next(each.name for each in varied if dependencies.task in each.columns)
        fact = f"--vary names {name}"
        raise UserError("a task cannot be varied", fact, "name it with --task, which may be repeated")
    for each in varied:
        for point in each.points:
            check_design(
                point.cells, {name: TypedField(each.name, point.text) for name in point.cells}, champion, "--vary"
            )
    described = champion.fields.cells(entry.values, entry.label)
    varied = _add_enumerated(entry, varied, described, dependencies)
    changing = [each for each in varied if not dependencies.defines_machine(each, described)]
    chosen = [tuple(zip(varied, points, strict=True)) for points in combinations(varied)]
    rows = [
        {name: cell for each, point in pairs if each in changing for name, cell in point.cells.items()}
        for pairs in chosen
    ]
    values = champion.fields.stack(rows, range(len(rows)))
    bases: dict[tuple[str, ...], _Base] = {}
    contradicted: dict[str, set[str]] = {}
    variants = []
    for place, (pairs, cells) in enumerate(zip(chosen, rows, strict=True)):
        defining = [pair for pair in pairs if pair[0] not in changing]
        points, key = tuple(point for _, point in pairs), tuple(point.text for _, point in defining)
        if key not in bases:
            bases[key] = _make_base(entry, defining, changing, dependencies, assume=assume)
        base = bases[key]
        drawn_cells = {} if base.drawn is None else base.drawn.completed.cells
        differing = {name for name in cells if name in drawn_cells and (drawn_cells[name] != values[name][place]).any()}
        if not differing:
            variants.append(Variant(points, base))
            continue
        derived = dependencies.find_derived(differing, base.origins)
        derived |= {name for each in changing for name in each.columns if base.origins[name] == GIVEN}
        base_cpu = ""
        if other := dependencies.find_contradicted(cells, base):
            base_cpu = str(base.cells[dependencies.cpu])
            contradicted[base_cpu] = contradicted.get(base_cpu, set()) | other
            capacities = champion.rules.capacities
            derived |= dependencies.keys | {capacity for name, capacity in capacities.items() if name in cells}
        remaining = {name: cell for name, cell in base.cells.items() if base.origins[name] not in (IMPLIED, MISSING)}
        known = {name: cell for name, cell in remaining.items() if name not in derived} | cells
        champion.rules.check_names(known, _list_typed(varied, points, base), "--vary")
        arrays = {name: values[name][[place]] for name in cells}
        variants.append(Variant(points, base, arrays, frozenset(derived - set(cells)), base_cpu))
    notes = dict.fromkeys(note for base in bases.values() for note in base.machine.notes)
    return Variants(
        varied,
        tuple(variants),
        (*notes, *(_note_hypothetical(cpu, names, varied) for cpu, names in contradicted.items())),
        champion,
    )


def _add_enumerated(
    entry: MachineEntry,
    varied: Sequence[VariedField],
    described: Collection[str],
    dependencies: _Dependencies,
) -> tuple[VariedField, ...]:
    """Return the varied fields, after that of the enumerated column where neither they nor the machine have it."""
    champion, column = dependencies.champion, dependencies.rules.enumerated
    if column is None or column in described or any(column in each.columns for each in varied):
        return tuple(varied)
    cpus = [[(each, point)] for each in varied if dependencies.cpu in each.columns for point in each.points] or [[]]
    changing = [each for each in varied if dependencies.cpu not in each.columns]
    machines = [_parse_base(entry, defining, changing, dependencies) for defining in cpus]
    stacked = stack_machines(machines, champion)
    values = sorted({float(each.cells[column]) for each in stacked.machines.values() if column in each.cells})
    points = tuple(Point(f"{value:g}", {column: value}) for value in values)
    return (VariedField(column, points, champion.fields.columns[column].unit), *varied) if points else tuple(varied)


_Defining = Sequence[tuple[VariedField, Point]]


def _parse_base(
    entry: MachineEntry,
    defining: _Defining,
    changing: Sequence[VariedField],
    dependencies: _Dependencies,
) -> ParsedMachine:
    """Parse the machine with the values that define it."""
    line, label, values = entry[:3]
    champion, fields = dependencies.champion, dependencies.champion.fields
    columns = {column for each, _ in defining for column in each.columns}
    typed = {name: value for name, value in values.items() if not columns & set(fields.cells({name: value}, label))}
    typed |= {each.name: point.text for each, point in defining}
    stated = {fields.find(name, label).name for name in typed}
    first = {each.name: each.points[0].text for each in changing if fields.find(each.name, "--vary").name not in stated}
    try:
        machine = parse_machine(MachineEntry(line, label, typed), champion)
        known = machine.cells.get(dependencies.cpu) in champion.entity_names.keys
    except UserError:
        known = False
    if not known:
        # the varied fields may describe a new CPU model: values are then imputed for the described machine, or for
        # the first combination where it leaves the varied fields out
        machine = parse_machine(MachineEntry(line, label, typed | first), champion)
    return machine


def _make_base(
    entry: MachineEntry,
    defining: _Defining,
    changing: Sequence[VariedField],
    dependencies: _Dependencies,
    *,
    assume: bool,
) -> _Base:
    """Parse and draw the machine that some values define; its processors share what it gives for all together."""
    champion = dependencies.champion
    machine = _parse_base(entry, defining, changing, dependencies)
    stacked = stack_machines([machine], champion, expand=False)
    for error in stacked.refusals.values():
        if machine.cells.get(dependencies.task) not in (None, *champion.tasks):
            raise error
        return _Base(machine, violation=f"{error.requirement}: {error.fact.removesuffix(f' ({machine.label})')}")
    frame = champion.fields.stack([machine.cells], [machine.line]).to_frame()
    per_chip = champion.rules.give_per_unit(frame)
    columns = {column for each in changing for column in each.columns}
    changed = {
        str(name): per_chip[name].iloc[0]
        for name in per_chip
        if name not in columns and not per_chip[name].equals(frame[name])
    }
    if changed:
        given = replace(machine, cells={**machine.cells, **changed})
        stacked = stack_machines([given], champion, expand=False)
    for error in stacked.refusals.values():
        raise error
    return _Base(machine, impute_draws(stacked, champion, assume=assume))


def _list_typed(varied: Sequence[VariedField], points: Sequence[Point], base: _Base) -> dict[str, TypedField]:
    """Return the fields of a combination as the user typed them, by column."""
    typed = dict(base.machine.typed)
    for each, point in zip(varied, points, strict=True):
        typed |= dict.fromkeys(point.cells, TypedField(each.name, point.text))
    return typed


def _note_hypothetical(cpu: str, contradicted: set[str], varied: Sequence[VariedField]) -> str:
    names = [field.name for field in varied if field.columns & contradicted]
    return (
        f"{cpu} has its own {' and '.join(names)}: a machine with another one has a hypothetical CPU model like it, "
        "with its other facts"
    )
