"""Parse machine entries with the fields and names of a champion, and check batches of them against the limits once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, NamedTuple, Self

import numpy as np

from perfcast.inference.cells import IMPLIED, LOOKED_UP, MEASURED, Cells, CompletedMachines, stack_cells
from perfcast.inference.champion import Champion
from perfcast.inference.machine_fields import Cell, TypedField
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.name_lookup import EntityMatch, list_tasks
from perfcast.inference.rules.limits import Violation
from perfcast.inference.rules.names import NamedEntity
from perfcast.schema.table import Tag
from perfcast.utils.errors import UserError

_MAX_CANDIDATES = 6


@dataclass(frozen=True)
class ParsedMachine:
    """One machine with checked cells by column.

    `line`: its line or number. `notes`: remarks to show. `label`: its name in errors. `typed`: by column, the field
    that the user typed.
    """

    line: int
    cells: Mapping[str, Cell]
    notes: tuple[str, ...] = ()
    label: str = field(default="", compare=False)
    typed: Mapping[str, TypedField] = field(default_factory=dict, compare=False)


def parse_machine(entry: MachineEntry, champion: Champion) -> ParsedMachine:
    """Parse one machine entry; entities and tasks may have any spelling. Raises: see `parse_machines`."""
    line, label = entry.line, entry.label
    cells, typed, ignored = champion.fields.parse(entry.values, label)
    if not cells:
        raise UserError("a machine must be described by at least one field", f"{label} has none", "see --help")
    entity, task = champion.entity, champion.task
    if task in cells:  # an unknown task is refused at imputation
        cells[task] = champion.task_names.find(str(cells[task])) or cells[task]
    notes = list(ignored)
    names = champion.rules.names
    design = names.design_column
    if design is not None:
        if design in cells:
            check_design(cells, typed, champion, label)
        match = champion.entity_names.find(str(cells[entity])) if entity in cells else EntityMatch(None)
        if match.key is None:
            notes += _read_new_entity(cells, typed, match, champion, label)
        else:
            others = f" (not {', '.join(match.candidates)})" if match.candidates else ""
            read = f"the {names.named_field} {cells[entity]!r} was read as {match.key!r}{others}"
            notes += [] if match.exact else [read]
            cells[entity] = match.key
            if match.key in champion.reference_data.user_entities:
                notes.append(f"facts of {match.key} are from your table")
    notes += champion.rules.presentation.list_notes(cells, typed, label)
    return ParsedMachine(line, cells, tuple(notes), label, typed)


def check_design(cells: Mapping[str, Any], typed: Mapping[str, TypedField], champion: Champion, label: str) -> None:
    """Refuse a design without any measured result: a new design must be given as the nearest measured one."""
    column = champion.rules.names.design_column
    if column is not None and column in cells and cells[column] not in champion.designs:
        candidates = get_close_matches(str(cells[column]), champion.designs, n=_MAX_CANDIDATES, cutoff=0.4)
        remedy = f"name the known one that comes nearest: {', '.join(candidates or champion.designs[:_MAX_CANDIDATES])}"
        name = typed[column].name if column in typed else column
        raise UserError(f"{name} must be one that was measured", f"{label} has {cells[column]!r}", remedy)


def _read_new_entity(
    cells: dict[str, Cell], typed: Mapping[str, TypedField], match: EntityMatch, champion: Champion, label: str
) -> list[str]:
    """Add what the name of an unknown entity tells, and return its note.

    Raises: UserError when the name tells no design, and a required field is missing.
    """
    entity, names = champion.entity, champion.rules.names
    named = names.read_entity_name(str(cells[entity])) if entity in cells else NamedEntity("", "", {})
    implied = named.cells if names.design_column not in cells else {}
    design = str(cells.get(str(names.design_column), named.design))
    given = {*cells, *implied}
    missing = [name for name, columns in names.new_entity_fields.items() if given.isdisjoint(columns)]
    if missing and not design:
        remedy = f"describe a new one: add {', '.join(missing)}"
        if match.candidates:
            remedy = f"write one of {', '.join(match.candidates)}, or {remedy}"
        fact = f"{label} has {cells[entity]!r}" if entity in cells else f"{label} names none"
        name = typed[entity].name if entity in typed else names.named_field
        raise UserError(f"{name} must be a known {names.entity_name}", fact, remedy)
    text = cells.get(entity, "")
    for column, cell in implied.items():
        cells.setdefault(column, cell)
    source = "usual machines, its design included"
    if design:
        source = f"the design {design}, which {'was' if design in champion.designs else 'was never'} measured"
    fields = champion.fields.fields
    giving = {
        name: (*names.new_entity_fields.get(name, ()), *(fields[name].columns if name in fields else (name,)))
        for name in names.new_entity_hints
        if not design or name != names.design_column
    }
    hints = [name for name, columns in giving.items() if cells.keys().isdisjoint(columns)]
    note = f"values that are not given come from {source}"
    note += f"; add {', '.join(hints)} to narrow the interval" if hints else ""
    if entity not in cells:
        return [note] if missing or not design else []
    if design:
        cells[entity] = named.name
    near = f" (known names: {', '.join(match.candidates)})" if match.candidates else ""
    return [f"no data names the {names.named_field} {text!r}{near}; {note}"]


@dataclass(frozen=True)
class ParsedMachines:
    """Batch of parsed machines with what does not depend on the task: facts of the entity, and what a row implies.

    Shapes: `known` has one row per machine; its index is the key of every machine: its line, or its number from 0
    where several machines have one line. `machines` are the machines by key, `refusals` the errors of those that cannot
    be used, which are left out, by line.
    """

    known: CompletedMachines
    machines: Mapping[int, ParsedMachine]
    refusals: Mapping[int, UserError] = field(default_factory=dict)

    @property
    def cells(self) -> Cells:
        """The cells of every standard column."""
        return self.known.cells

    @property
    def keys(self) -> list[int]:
        """The keys of the machines."""
        return list(self.known.cells.index.tolist())

    @property
    def notes(self) -> dict[int, tuple[str, ...]]:
        """The notes of machines by key, for those that have any."""
        return {key: notes for key in dict.fromkeys(self.keys) if (notes := self.machines[key].notes)}

    def line_of(self, key: int) -> int:
        """Return the line of a machine."""
        return self.machines[key].line

    def take(self, rows: np.ndarray) -> Self:
        """Return some machines, by numbers (m,) int or flags (n,) bool."""
        return replace(self, known=self.known.take(rows))

    def with_keys(self, keys: Sequence[int]) -> Self:
        """Return the batch with other keys, in the order of the machines."""
        known = CompletedMachines(Cells(self.cells, np.array(keys, dtype=int)), self.known.codes)
        machines = (self.machines[key] for key in self.keys)
        return replace(self, known=known, machines=dict(zip(keys, machines, strict=True)))

    def for_tasks(self, tasks: Sequence[str], champion: Champion) -> Self:
        """Return every machine once for each of some tasks."""
        count = len(self.cells.index)
        known = self.known.take(np.repeat(np.arange(count), len(tasks)))
        column, listed = champion.task, np.array([*tasks] * count, dtype=object)
        known.give(column, np.full(len(listed), True), listed)
        return replace(self, known=known)


def parse_machines(entries: Sequence[MachineEntry], champion: Champion) -> ParsedMachines:
    """Parse machines, each as often as it has alternatives; see `parse_batch`.

    Raises: UserError for the first machine that cannot be used.
    """
    return parse_batch(entries, champion, strict=True)


def parse_batch(
    entries: Sequence[MachineEntry],
    champion: Champion,
    *,
    strict: bool = False,
    has_task: bool = True,
    asks_capacity: bool = False,
) -> ParsedMachines:
    """Parse machines, and check them against the limits of the dataset's rules.

    Without `has_task` a machine that names a task is refused; for `asks_capacity` see `stack_machines`.
    Raises: UserError of the first machine that cannot be used, with `strict` or when it is the only one.
    """
    strict = strict or len(entries) == 1
    task = champion.task
    parsed: list[ParsedMachine] = []
    refusals: dict[int, UserError] = {}
    for entry in entries:
        try:
            machine = parse_machine(entry, champion)
            if not has_task and task in machine.cells:
                fact = f"{machine.label} has {machine.typed[task].name}"
                raise UserError("ranked and compared machines must name no task", fact, "leave it out")
            parsed.append(machine)
        except UserError as error:
            if strict:
                raise
            refusals[entry.line] = error
    machines = stack_machines(parsed, champion, asks_capacity=asks_capacity)
    if strict and machines.refusals:
        raise next(iter(machines.refusals.values()))
    return replace(machines, refusals={**refusals, **machines.refusals})


def stack_machines(
    machines: Sequence[ParsedMachine], champion: Champion, *, expand: bool = True, asks_capacity: bool = False
) -> ParsedMachines:
    """Return machines as one batch, without those that break a limit or name an unknown task.

    With `expand` a machine that leaves out the enumerated column stands once for each of its values, without those that
    break a limit, unless all do: then the first one stands for them. With `asks_capacity` a machine that has less of
    something than its entity, such as fewer cores, stands for itself and for one with all of it.
    """
    columns = champion.reference_data.measured.columns
    steps = CompletedMachines(stack_cells([machine.cells for machine in machines], columns))
    if not machines:
        return ParsedMachines(steps, {})
    fill_facts(steps, champion)
    stacked = list(machines)
    listed = _list_alternatives(steps, stacked, champion, asks_capacity=asks_capacity) if expand else []
    owners = _expand(steps, stacked, listed)
    steps.conclude(champion.rules.typical_values.fill_implied, IMPLIED)
    errors = _find_errors(steps.numbered, stacked, champion)
    rows = _choose_alternatives(owners, stacked, errors, listed) if (owners >= 0).any() else range(len(stacked))
    lines = [stacked[row].line for row in rows]
    keys = lines if len({*lines}) == len(lines) else list(range(len(lines)))
    refusals = {stacked[row].line: errors[row] for row in rows if row in errors}
    usable = [place for place, row in enumerate(rows) if row not in errors]
    known = steps.take(np.array([rows[place] for place in usable], dtype=int))
    known.cells.index = np.array([keys[place] for place in usable], dtype=int)
    return ParsedMachines(known, dict(zip(keys, (stacked[row] for row in rows), strict=True)), refusals)


def fill_facts(steps: CompletedMachines, champion: Champion) -> None:
    """Fill facts of the entity, and what all of its measured results have."""
    reference_data = champion.reference_data
    steps.fill(champion.rules.typical_values.fill_entity_facts(steps.cells, reference_data.facts_by_model), LOOKED_UP)
    steps.fill(reference_data.fill_common(steps.cells, Tag.ENTITY), MEASURED)


class _Alternatives(NamedTuple):
    """Values of a column that a machine is answered for, and why: none for a machine without a question."""

    column: str
    values: Sequence[float] = ()
    reason: str = ""


def _list_alternatives(
    steps: CompletedMachines, machines: Sequence[ParsedMachine], champion: Champion, *, asks_capacity: bool
) -> list[_Alternatives]:
    """Return the alternatives of every machine: of the enumerated column where it is left out, or of a capacity.

    Values of the former are those of `TypicalValues.list_alternatives` and those of measured results of the entity.
    """
    rules, reference_data = champion.rules, champion.reference_data
    column = rules.typical_values.enumerated
    entities = steps.cells[champion.entity].tolist()
    sold = rules.typical_values.list_alternatives(steps.cells)
    listed = []
    for row, (machine, entity) in enumerate(zip(machines, entities, strict=True)):
        alternatives = _Alternatives("")
        if column is not None and column not in machine.cells:
            values = sorted({*sold[row], *reference_data.list_values(column, entity)})
            alternatives = _Alternatives(column, values, f"{column} is not given")
        elif asks_capacity:
            for name, capacity in rules.limits.capacities.items():
                given, whole = machine.cells.get(name), float(steps.cells[capacity][row])
                if isinstance(given, float) and given < whole and capacity not in machine.cells:
                    reason = f"{champion.fields.name_of(name)}: {given:g} is fewer than the {whole:g} of {entity}"
                    alternatives = _Alternatives(name, (given, whole), reason)
        listed.append(alternatives)
    return listed


def _expand(steps: CompletedMachines, machines: list[ParsedMachine], listed: Sequence[_Alternatives]) -> np.ndarray:
    """Repeat machines with alternatives, in both, once for each of their values.

    Returns: the number of the machine of every alternative, -1 for a machine without any, (rows,).
    """
    if not any(each.values for each in listed):
        return np.full(len(machines), -1)
    counts = [max(1, len(each.values)) for each in listed]
    owners = np.repeat([place if each.values else -1 for place, each in enumerate(listed)], counts)
    steps.repeat(np.repeat(np.arange(len(machines)), counts))
    machines[:] = [
        each
        for machine, (column, values, _) in zip(machines, listed, strict=True)
        for each in [replace(machine, cells={**machine.cells, column: value}) for value in values] or [machine]
    ]
    for name in {each.column for each in listed if each.values}:
        rows = np.repeat([bool(each.values) and each.column == name for each in listed], counts)
        steps.give(name, rows, np.array([each.cells[name] for each, row in zip(machines, rows, strict=True) if row]))
    return owners


def _choose_alternatives(
    owners: np.ndarray, machines: list[ParsedMachine], errors: Mapping[int, UserError], listed: Sequence[_Alternatives]
) -> list[int]:
    """Return the rows of possible alternatives and of other machines; each alternative gets a note that names all."""
    rows = list[int]()
    for group in np.split(np.arange(len(owners)), 1 + np.flatnonzero((np.diff(owners) != 0) | (owners[1:] < 0))):
        possible = group.tolist()
        if owners[possible[0]] >= 0:
            possible = [row for row in possible if row not in errors] or possible[:1]
            column, values, reason = listed[owners[possible[0]]]
            if len(values) == 1:  # there is no other, and the name of the machine tells it
                rows += possible
                continue
            shown = " and ".join(f"{machines[row].cells[column]:g}" for row in possible)
            note = f"{reason}: there is an answer for {shown}"
            for row in possible:
                machines[row] = replace(machines[row], notes=(*machines[row].notes, note))
        rows += possible
    return rows


def _find_errors(cells: Cells, machines: Sequence[ParsedMachine], champion: Champion) -> dict[int, UserError]:
    """Return by row the first limit that a machine breaks, or its unknown task, with the field as typed."""
    errors: dict[int, UserError] = {}
    for violation in champion.rules.limits.find_violations(cells):
        machine = machines[violation.line]
        field_name, fact = _name_field(violation, machine.typed, cells, champion)
        text = f"{fact} ({machine.label})" if machine.label[-1:].isdigit() else fact
        errors.setdefault(violation.line, UserError(field_name, text, violation.remedy))
    for row, vendor in enumerate(champion.rules.limits.list_vendors(cells)):
        if isinstance(vendor, str) and vendor not in champion.measured_vendors:
            errors.setdefault(row, _refuse_vendor(vendor, machines[row], champion))
    task = champion.task
    for row, name in enumerate(cells[task].tolist()):
        if name is not None and name not in champion.tasks:
            typed = machines[row].typed.get(task, TypedField(task, str(name)))
            fact = f"{machines[row].label} has {typed.text!r}"
            requirement = f"{typed.name} must be one of {list_tasks(champion.tasks)}"
            errors.setdefault(row, UserError(requirement, fact, "or leave it out"))
    return errors


def _refuse_vendor(vendor: str, machine: ParsedMachine, champion: Champion) -> UserError:
    name = champion.rules.names.named_field
    field_name = machine.typed[name].name if name in machine.typed else name
    fact = f"{machine.label} has one of {vendor[:60]}"
    measured = ", ".join(champion.measured_vendors)
    return UserError(
        f"{field_name} must be of a vendor with results in {champion.dataset}", fact, f"these are {measured}"
    )


def _name_field(
    violation: Violation, typed: Mapping[str, TypedField], cells: Cells, champion: Champion
) -> tuple[str, str]:
    """Return the wrong field as the user typed it, and the fact with the name of the entity."""
    first = violation.columns[0]
    name = next((typed[column].name for column in violation.columns if column in typed), champion.fields.name_of(first))
    entity = champion.entity
    if entity in typed:
        return name, violation.fact.replace("{entity}", typed[entity].text)
    key = cells[entity][np.flatnonzero(cells.index == violation.line)[0]]
    return name, violation.fact.replace("{entity}", f"the {champion.rules.names.named_field}" if key is None else key)
