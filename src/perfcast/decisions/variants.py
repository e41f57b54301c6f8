"""Variants of a machine: varied fields such as `cores=64..192:16`, and all combinations with what stays constant."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from perfcast.inference.cells import CODES, LOOKED_UP, MEASURED
from perfcast.inference.champion import Champion
from perfcast.inference.machine_fields import Cell, MachineFields, TypedField
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine, ParsedMachines, check_design, parse_machine, stack_machines
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
class Variants:
    """All combinations of the varied fields, of which there may be one more than those that were asked for.

    `machines` are the possible ones; their keys are the numbers of `combinations`. `reasons` say why others are
    impossible. `base_entities`: the entities whose facts hypothetical machines have. All are by number.
    """

    varied: tuple[VariedField, ...]
    combinations: tuple[tuple[Point, ...], ...]
    machines: ParsedMachines
    reasons: Mapping[int, str]
    base_entities: Mapping[int, str]
    notes: tuple[str, ...]


def make_variants(entry: MachineEntry, varied: Sequence[VariedField], champion: Champion) -> Variants:
    """Make a machine of every combination: the described one with the varied cells in place of its own.

    It is the machine that a user would describe so, but for one that contradicts its entity: that is a hypothetical
    one, without a name, with the other facts of the entity. The enumerated column, such as the number of units, is
    varied where the machine leaves it out.
    Raises: UserError when the machine itself cannot be used.
    """
    for each in varied:
        if champion.task in each.columns:
            fact = f"--vary names {each.name}"
            raise UserError("a task cannot be varied", fact, "name it with --task, which may be repeated")
        for point in each.points:
            typed = dict.fromkeys(point.cells, TypedField(each.name, point.text))
            check_design(point.cells, typed, champion, "--vary")
    varied = _add_enumerated(entry, varied, champion)
    chosen = tuple(combinations(varied))
    bases: dict[tuple[str, ...], ParsedMachine] = {}
    facts: dict[str, Mapping[str, Cell]] = {}
    contradicted: dict[str, set[str]] = {}
    machines: list[ParsedMachine] = []
    copied: dict[int, Mapping[str, Cell]] = {}
    base_entities: dict[int, str] = {}
    for number, points in enumerate(chosen):
        pairs = list(zip(varied, points, strict=True))
        defining = [pair for pair in pairs if champion.entity in pair[0].columns]
        changing = [pair for pair in pairs if champion.entity not in pair[0].columns]
        key = tuple(point.text for _, point in defining)
        if key not in bases:
            bases[key] = _parse_base(entry, defining, [each for each, _ in changing], champion)
        base = bases[key]
        entity = str(base.cells.get(champion.entity, ""))
        if entity not in facts:
            facts[entity] = _find_facts(base, champion)
        machine = _change(base, changing, champion)
        differences = _find_contradicted(machine.cells, changing, facts[entity], champion)
        if differences:
            base_entities[number] = entity
            contradicted[entity] = contradicted.get(entity, set()) | differences
            copied[number] = _list_copied(machine.cells, facts[entity], differences, champion)
            given = {name: cell for name, cell in machine.cells.items() if name != champion.entity}
            machine = replace(machine, cells={**copied[number], **given})
        # raises for a name without its facts
        champion.rules.presentation.list_notes(machine.cells, machine.typed, "--vary")
        machines.append(replace(machine, line=number))
    stacked = stack_machines(machines, champion, expand=False)
    for row, number in enumerate(stacked.keys):
        for name in copied.get(number, ()):
            stacked.known.codes[row, stacked.known.places[name]] = CODES[LOOKED_UP]
    for error in stacked.refusals.values():
        if machines[0].cells.get(champion.task) not in (None, *champion.tasks):
            raise error
    reasons = {
        number: f"{error.requirement}: {error.fact.removesuffix(f' ({machines[number].label})')}"
        for number, error in stacked.refusals.items()
    }
    notes = list(dict.fromkeys(note for base in bases.values() for note in base.notes))
    for name, columns in contradicted.items():
        names = " and ".join(each.name for each in varied if each.columns & columns)
        other = f"a machine with another one has a hypothetical {champion.rules.names.entity_name} like it"
        notes.append(f"{name} has its own {names}: {other}, with its other facts")
    return Variants(tuple(varied), chosen, stacked, reasons, base_entities, tuple(notes))


_Pairs = Sequence[tuple[VariedField, Point]]


def _add_enumerated(entry: MachineEntry, varied: Sequence[VariedField], champion: Champion) -> Sequence[VariedField]:
    """Return the varied fields, after that of the enumerated column where neither they nor the machine have it."""
    column, described = champion.rules.typical_values.enumerated, champion.fields.cells(entry.values, entry.label)
    if column is None or column in described or any(column in each.columns for each in varied):
        return varied
    entities = [[(each, point)] for each in varied if champion.entity in each.columns for point in each.points]
    changing = [each for each in varied if champion.entity not in each.columns]
    machines = [_parse_base(entry, defining, changing, champion) for defining in entities or [[]]]
    stacked = stack_machines(machines, champion).machines.values()
    values = sorted({float(each.cells[column]) for each in stacked if column in each.cells})
    points = tuple(Point(f"{value:g}", {column: value}) for value in values)
    added = [VariedField(column, points, champion.fields.columns[column].unit)] if points else []
    return (*added, *varied)


def _parse_base(
    entry: MachineEntry, defining: _Pairs, changing: Sequence[VariedField], champion: Champion
) -> ParsedMachine:
    """Parse the machine with the values that define it."""
    line, label, values = entry[:3]
    fields = champion.fields
    columns = {column for each, _ in defining for column in each.columns}
    typed = {name: value for name, value in values.items() if not columns & set(fields.cells({name: value}, label))}
    typed |= {each.name: point.text for each, point in defining}
    stated = {fields.find(name, label).name for name in typed}
    varied = {each.name: each.points[0].text for each in changing}
    first = {name: text for name, text in varied.items() if fields.find(name, "--vary").name not in stated}
    try:
        machine = parse_machine(MachineEntry(line, label, typed), champion)
        if machine.cells.get(champion.entity) in champion.entity_names.keys:
            return machine
    except UserError:
        pass
    # the varied fields may describe a new entity
    return parse_machine(MachineEntry(line, label, typed | first), champion)


def _change(base: ParsedMachine, changing: _Pairs, champion: Champion) -> ParsedMachine:
    """Return a machine with varied cells, without those of its own that would contradict them."""
    cells = {name: cell for _, point in changing for name, cell in point.cells.items()}
    differing = {name for name, cell in cells.items() if base.cells.get(name) != cell}
    dropped = {column for name in differing for column in champion.rules.limits.replaced.get(name, ())}
    # a value of a varied field may have fewer columns than that of the machine
    dropped |= {name for each, _ in changing for name in each.columns}
    remaining = {name: cell for name, cell in base.cells.items() if name not in dropped}
    typed = {name: TypedField(each.name, point.text) for each, point in changing for name in point.cells}
    return replace(base, cells={**remaining, **cells}, typed={**base.typed, **typed})


def _find_facts(base: ParsedMachine, champion: Champion) -> dict[str, Cell]:
    """Return what is known of the entity of a machine, by column."""
    entity = champion.entity
    if entity not in base.cells:
        return {}
    measured = champion.reference_data.measured
    group = next(column.group for column in measured.columns if column.name == entity)
    known = stack_machines([ParsedMachine(0, {entity: base.cells[entity]})], champion, expand=False).known
    is_fact = known.has_origin(*_FACTS)
    names = [name for name in measured.select(group=group) if is_fact[:1, known.places[name]].any()]
    return {name: known.cells[name][0] for name in names}


def _find_contradicted(
    cells: Mapping[str, Cell], changing: _Pairs, facts: Mapping[str, Cell], champion: Champion
) -> set[str]:
    """Return the varied columns that differ from the facts of the entity, or are more than it has."""
    varied = {name: cells[name] for _, point in changing for name in point.cells}
    limits = champion.rules.limits
    capacities = {name: each for name, each in limits.capacities.items() if name in varied and each in facts}
    beyond = {name for name, capacity in capacities.items() if float(varied[name]) > float(facts[capacity])}
    return beyond | {name for name, cell in varied.items() if name in facts and cell != facts[name]}


def _list_copied(
    cells: Mapping[str, Cell], facts: Mapping[str, Cell], differences: set[str], champion: Champion
) -> dict[str, Cell]:
    """Return the facts that a hypothetical machine has of the entity: all but its names, and what differs."""
    limits, measured = champion.rules.limits, champion.reference_data.measured
    left_out = {*measured.select(role=Role.KEY), *cells}
    left_out |= {capacity for name, capacity in limits.capacities.items() if name in cells}
    left_out |= {column for name in differences for column in limits.replaced.get(name, ())}
    return {name: cell for name, cell in facts.items() if name not in left_out}
