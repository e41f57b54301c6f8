"""Variants of a machine: varied fields such as `cores=64..192:16`, and all combinations with what stays constant."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.cells import ASSUMED, GIVEN, IMPLIED, LOOKED_UP, MEASURED, MISSING, stack_cells
from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawnMachines, change_draws, complete_draws, impute_draws, join_draws
from perfcast.inference.machine_fields import Cell, MachineFields, TypedField
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine, check_design, name_violations, parse_machine, stack_machines
from perfcast.schema.table import Kind, Role
from perfcast.utils.errors import UserError

MAX_COMBINATIONS = 2000
_AT_MOST = f"at most {MAX_COMBINATIONS} combinations are possible"
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)"
_UNIT = r"[A-Za-z][A-Za-z/]*"
_RANGE = re.compile(
    rf"\s*(?P<low>{_NUMBER})\s*(?P<low_unit>{_UNIT})?\s*\.\.\s*(?P<high>{_NUMBER})\s*(?P<high_unit>{_UNIT})?"
    rf"\s*(?::\s*(?P<step>{_NUMBER})\s*(?P<step_unit>{_UNIT})?)?\s*"
)
_FACTS = (LOOKED_UP, MEASURED)


@dataclass(frozen=True)
class Point:
    """One value of a varied field: its text and its cells."""

    text: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class VariedField:
    """Field with its values. `unit` is that of its one numerical column; None for any other field."""

    name: str
    points: tuple[Point, ...]
    unit: str | None

    @property
    def columns(self) -> set[str]:
        """The columns of its values."""
        return {column for point in self.points for column in point.cells}


def read_varied_fields(texts: Sequence[str], fields: MachineFields) -> tuple[VariedField, ...]:
    """Read NAME=VALUES texts; values are joined by commas, or by | where they hold commas themselves, or are
    LOW..HIGH:STEP, which goes up to HIGH.

    The same name may be repeated and adds values. Raises: UserError for any other text, for two names of the same
    column, and for more than MAX_COMBINATIONS combinations.
    """
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        if not equals or not name.strip() or not listed.strip():
            raise UserError("--vary must be NAME=VALUE,VALUE or NAME=LOW..HIGH:STEP", f"it is {text[:80]!r}")
        values.setdefault(name.strip().lower(), []).extend(_split_values(name.strip(), listed))
    varied = tuple(_read_field(name, listed, fields) for name, listed in values.items())
    names: dict[str, str] = {}
    for each in varied:
        for column in sorted(each.columns):
            if names.setdefault(column, each.name) != each.name:
                quantity = fields.columns[column].meaning or column
                fact = f"{names[column]} and {each.name} both describe {quantity}"
                raise UserError("varied names must be independent", fact, "write both as one field")
    count = math.prod(len(each.points) for each in varied)
    if count > MAX_COMBINATIONS:
        sizes = " x ".join(f"{len(each.points)} of {each.name}" for each in varied)
        raise UserError(_AT_MOST, f"{sizes} are {count}", "vary fewer values")
    return varied


def combinations(varied: Sequence[VariedField]) -> Iterator[tuple[Point, ...]]:
    """Yield every combination of the values; those of the last name change fastest."""
    return product(*(field.points for field in varied))


def _split_values(name: str, listed: str) -> list[str]:
    values: list[str] = []
    for piece in filter(None, map(str.strip, listed.split("|" if "|" in listed else ","))):
        match = _RANGE.fullmatch(piece)
        values += _expand_range(name, match) if match else [piece]
        if len(values) > MAX_COMBINATIONS:
            raise UserError(_AT_MOST, f"--vary {name} has more values")
    return values


def _expand_range(name: str, match: re.Match[str]) -> list[str]:
    low, high = float(match["low"]), float(match["high"])
    unit = match["high_unit"] or match["low_unit"] or ""
    if {match["low_unit"] or unit, match["step_unit"] or unit} != {unit}:
        raise UserError(f"the numbers of --vary {name} must have one unit", f"it is {match[0].strip()!r}")
    if not low < high:
        raise UserError(f"--vary {name} must go from a lower to a higher number", f"it is {match[0].strip()!r}")
    if match["step"] is None:
        raise UserError(f"--vary {name} must have a step", f"it goes from {low:g} to {high:g}", "such as 64..192:16")
    step = float(match["step"])
    if step <= 0:
        raise UserError(f"the step of --vary {name} must be positive", f"it is {step:g}")
    count = math.floor((high - low) / step + 1e-9)
    if count >= MAX_COMBINATIONS:
        raise UserError(_AT_MOST, f"--vary {name} has {count + 1} values")
    numbers = (round(low + index * step, 9) for index in range(count + 1))
    return [f"{number:.12g} {unit}".strip() for number in numbers]


def _read_field(name: str, values: Sequence[str], fields: MachineFields) -> VariedField:
    points: list[Point] = []
    for text in values:
        try:
            cells, _, notes = fields.parse({name: text}, "--vary")
            if notes:
                raise UserError(f"values of --vary {name} must be understood whole", notes[0])
        except UserError as error:
            hint = "join values by | where they hold commas" if len(values) > 1 else ""
            raise UserError(error.requirement, error.fact, "; ".join(filter(None, [error.remedy, hint]))) from None
        if cells and cells not in [point.cells for point in points]:
            points.append(Point(text, cells))
    if not points:
        raise UserError("--vary must have values", f"{name} has none")
    columns = {column for point in points for column in point.cells}
    only = fields.columns[min(columns)]
    numeric = len(columns) == 1 and only.kind is Kind.NUMERICAL
    return VariedField(name, tuple(points), only.unit if numeric else None)


@dataclass(frozen=True)
class _Base:
    """Machine before anything is varied, with its entity: its draws, or why it is impossible."""

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
        return {str(name): str(origin) for name, origin in self.drawn.completed.origins.iloc[0].items()}


@dataclass(frozen=True)
class Variant:
    """One combination: its machine, with other cells, (1,) each, and the columns that follow from them anew.

    A combination that is the machine itself has neither. `base_entity`: the entity whose facts a hypothetical one has,
    "" for a real one.
    """

    points: tuple[Point, ...]
    base: _Base
    cells: Mapping[str, np.ndarray] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    base_entity: str = ""


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
                rows = np.flatnonzero(~is_impossible)
                owners = np.unique(varied.owners[rows], return_inverse=True)[1]
                completed = varied.completed.take(rows)
                drawn = (varied.weights[rows], varied.shared[rows], varied.other[rows])
                same.append(DrawnMachines(completed, owners, *drawn))
        return join_draws(same) if same else None, reasons


class _VariantMaker:
    """The described machine with each of the values that define it, and the dependencies between its columns."""

    def __init__(
        self,
        entry: MachineEntry,
        varied: Sequence[VariedField],
        champion: Champion,
        *,
        when: pd.Timestamp | None,
        assume: bool,
    ) -> None:
        self.entry, self.champion, self.rules, self.when, self.assume = entry, champion, champion.rules, when, assume
        measured, self.entity, self.task = champion.reference_data.measured, champion.entity, champion.task
        group = next(column.group for column in measured.columns if column.name == self.entity)
        self.facts = set(measured.select(group=group))
        self.keys = set(measured.select(role=Role.KEY, group=group))
        described = champion.fields.cells(entry.values, entry.label)
        self.varied = self._add_enumerated(varied, described)
        enumerated = {self.rules.enumerated} - set(described)
        self.changing = [each for each in self.varied if not each.columns & {self.entity, *enumerated}]

    def find_derived(self, varied: set[str], origins: Mapping[str, str]) -> set[str]:
        """Return the columns that are derived anew when others are varied."""
        replaced = {name for column in varied for name in self.rules.replaced.get(column, ())}
        adapted = {name for column in varied for name in self.rules.adapted.get(column, ())}
        for block in self.rules.blocks:
            # known facts of an entity stay constant, so its other columns are not imputed again
            if (varied - self.facts) & set(block.columns):
                adapted |= {name for name in block.columns if origins.get(name) == ASSUMED} - self.facts
        return replaced | {name for name in adapted if origins.get(name) != GIVEN}

    def find_contradicted(self, cells: Mapping[str, Cell], base: _Base) -> set[str]:
        """Return the columns in which cells differ from the facts of the base's entity."""
        origins = base.origins
        known = {name: base.cells[name] for name in origins if origins[name] in _FACTS and name in self.facts}
        capacities = ((name, each) for name, each in self.rules.capacities.items() if name in cells and each in known)
        beyond = {name for name, capacity in capacities if cells[name] > known[capacity]}
        return beyond | {name for name, cell in cells.items() if name in known and cell != known[name]}

    def make_base(self, defining: _Defining) -> _Base:
        """Parse and draw the machine that some values define."""
        champion = self.champion
        machine = self._parse_base(defining, self.changing)
        stacked = stack_machines([machine], champion, expand=False)
        for error in stacked.refusals.values():
            if machine.cells.get(self.task) not in (None, *champion.tasks):
                raise error
            return _Base(machine, violation=f"{error.requirement}: {error.fact.removesuffix(f' ({machine.label})')}")
        return _Base(machine, impute_draws(stacked, champion, self.when, assume=self.assume))

    def _add_enumerated(self, varied: Sequence[VariedField], described: Collection[str]) -> tuple[VariedField, ...]:
        """Return the varied fields, after that of the enumerated column where neither they nor the machine have it."""
        champion, column = self.champion, self.rules.enumerated
        if column is None or column in described or any(column in each.columns for each in varied):
            return tuple(varied)
        entities = [[(each, point)] for each in varied if self.entity in each.columns for point in each.points]
        changing = [each for each in varied if self.entity not in each.columns]
        machines = [self._parse_base(defining, changing) for defining in entities or [[]]]
        stacked = stack_machines(machines, champion).machines.values()
        values = sorted({float(each.cells[column]) for each in stacked if column in each.cells})
        points = tuple(Point(f"{value:g}", {column: value}) for value in values)
        added = [VariedField(column, points, champion.fields.columns[column].unit)] if points else []
        return (*added, *varied)

    def _parse_base(self, defining: _Defining, changing: Sequence[VariedField]) -> ParsedMachine:
        """Parse the machine with the values that define it."""
        line, label, values = self.entry[:3]
        champion, fields = self.champion, self.champion.fields
        columns = {column for each, _ in defining for column in each.columns}
        typed = {name: value for name, value in values.items() if not columns & set(fields.cells({name: value}, label))}
        typed |= {each.name: point.text for each, point in defining}
        stated = {fields.find(name, label).name for name in typed}
        varied = {each.name: each.points[0].text for each in changing}
        first = {name: text for name, text in varied.items() if fields.find(name, "--vary").name not in stated}
        try:
            machine = parse_machine(MachineEntry(line, label, typed), champion)
            if machine.cells.get(self.entity) in champion.entity_names.keys:
                return machine
        except UserError:
            pass
        # the varied fields may describe a new entity: values are then imputed for the described machine, or for the
        # first combination where it leaves the varied fields out
        return parse_machine(MachineEntry(line, label, typed | first), champion)


_Defining = Sequence[tuple[VariedField, Point]]


def make_variants(
    entry: MachineEntry,
    varied: Sequence[VariedField],
    champion: Champion,
    *,
    when: pd.Timestamp | None = None,
    assume: bool = True,
) -> Variants:
    """Make every combination of a machine.

    The machine is drawn first, once for every varied entity, and its draws then stay constant in all combinations. Only
    the varied columns change, and the columns that the rules derive from them (`replaced`, `adapted`, and values that
    were imputed together with them). A combination that contradicts the entity has a hypothetical one with its other
    facts; every other one is the real machine, so that a combination does not change with the others in the list. The
    enumerated column, such as the number of units, is varied where the machine leaves it out.
    Raises: UserError when the machine itself cannot be used.
    """
    task = champion.task
    for each in varied:
        if task in each.columns:
            fact = f"--vary names {each.name}"
            raise UserError("a task cannot be varied", fact, "name it with --task, which may be repeated")
    for each in varied:
        for point in each.points:
            typed = dict.fromkeys(point.cells, TypedField(each.name, point.text))
            check_design(point.cells, typed, champion, "--vary")
    design = _VariantMaker(entry, varied, champion, when=when, assume=assume)
    chosen = [tuple(zip(design.varied, points, strict=True)) for points in combinations(design.varied)]
    rows = [
        {name: cell for each, point in pairs if each in design.changing for name, cell in point.cells.items()}
        for pairs in chosen
    ]
    values = stack_cells(rows, champion.fields.columns.values())
    bases: dict[tuple[str, ...], _Base] = {}
    contradicted: dict[str, set[str]] = {}
    variants = []
    for place, (pairs, cells) in enumerate(zip(chosen, rows, strict=True)):
        defining = [pair for pair in pairs if pair[0] not in design.changing]
        points, key = tuple(point for _, point in pairs), tuple(point.text for _, point in defining)
        if key not in bases:
            bases[key] = design.make_base(defining)
        base = bases[key]
        drawn_cells = {} if base.drawn is None else base.drawn.completed.cells
        differing = {name for name in cells if name in drawn_cells and (drawn_cells[name] != values[name][place]).any()}
        if not differing:
            variants.append(Variant(points, base))
            continue
        derived = design.find_derived(differing, base.origins)
        derived |= {name for each in design.changing for name in each.columns if base.origins[name] == GIVEN}
        base_entity = ""
        if differences := design.find_contradicted(cells, base):
            base_entity = str(base.cells[design.entity])
            contradicted[base_entity] = contradicted.get(base_entity, set()) | differences
            capacities = champion.rules.capacities
            derived |= design.keys | {capacity for name, capacity in capacities.items() if name in cells}
        remaining = {name: cell for name, cell in base.cells.items() if base.origins[name] not in (IMPLIED, MISSING)}
        known = {name: cell for name, cell in remaining.items() if name not in derived} | cells
        tuple(champion.rules.list_notes(known, _list_typed(design.varied, points, base), "--vary"))  # raises
        arrays = {name: values[name][[place]] for name in cells}
        variants.append(Variant(points, base, arrays, frozenset(derived - set(cells)), base_entity))
    notes = list(dict.fromkeys(note for base in bases.values() for note in base.machine.notes))
    for entity, columns in contradicted.items():
        names = " and ".join(each.name for each in design.varied if each.columns & columns)
        other = f"a machine with another one has a hypothetical {champion.rules.entity_name} like it"
        notes.append(f"{entity} has its own {names}: {other}, with its other facts")
    return Variants(design.varied, tuple(variants), tuple(notes), champion)


def _list_typed(varied: Sequence[VariedField], points: Sequence[Point], base: _Base) -> dict[str, TypedField]:
    """Return the fields of a combination as the user typed them, by column."""
    typed = dict(base.machine.typed)
    for each, point in zip(varied, points, strict=True):
        typed |= dict.fromkeys(point.cells, TypedField(each.name, point.text))
    return typed
