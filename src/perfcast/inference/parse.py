"""Parse machine entries with the fields and names of a champion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from perfcast.inference.champion import Champion
from perfcast.inference.imputation.rules import NamedEntity
from perfcast.inference.machine_fields import Cell, TypedField
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.name_lookup import EntityMatch
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
    """Parse one machine entry; Entities and tasks are found in any spelling. Raises: see `parse_machines`."""
    line, label = entry.line, entry.label
    cells, typed, ignored = champion.fields.parse(entry.values, label)
    if not cells:
        raise UserError("a machine must be described by at least one field", f"{label} has none", "see --help")
    entity, task = (champion.reference_data.measured.column_of(tag) for tag in (Tag.ENTITY, Tag.TASK))
    if task in cells:  # an unknown task is refused at imputation
        cells[task] = champion.task_names.find(str(cells[task])) or cells[task]
    notes = list(ignored)
    if champion.rules.design_column is not None:
        check_design(cells, typed, champion, label)
        match = champion.entity_names.find(str(cells[entity])) if entity in cells else EntityMatch(None)
        if match.key is None:
            notes += _read_new_entity(cells, typed, match, champion, label)
        else:
            others = f" (not {', '.join(match.candidates)})" if match.candidates else ""
            read = f"the {champion.rules.named_field} {cells[entity]!r} was read as {match.key!r}{others}"
            notes += [] if match.exact else [read]
            cells[entity] = match.key
            if match.key in champion.reference_data.user_entities:
                notes.append(f"facts of {match.key} are from your table")
    notes += champion.rules.check_names(cells, typed, label)
    return ParsedMachine(line, cells, (*notes, *champion.rules.list_notes(cells)), label, typed)


def check_design(cells: Mapping[str, Any], typed: Mapping[str, TypedField], champion: Champion, label: str) -> None:
    """Refuse a design without any measured result: a new design must be given as the nearest measured one."""
    column = champion.rules.design_column
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
    entity, rules = champion.reference_data.measured.column_of(Tag.ENTITY), champion.rules
    named = rules.read_entity_name(str(cells[entity])) if entity in cells else NamedEntity("", "", {})
    implied = named.cells if rules.design_column not in cells else {}
    design = str(cells.get(str(rules.design_column), named.design))
    given = {*cells, *implied}
    missing = [name for name, columns in rules.new_entity_fields.items() if given.isdisjoint(columns)]
    if missing and not design:
        remedy = f"describe a new one: add {', '.join(missing)}"
        if match.candidates:
            remedy = f"write one of {', '.join(match.candidates)}, or {remedy}"
        fact = f"{label} has {cells[entity]!r}" if entity in cells else f"{label} names none"
        name = typed[entity].name if entity in typed else rules.named_field
        raise UserError(f"{name} must be a known {rules.entity_name}", fact, remedy)
    text = cells.get(entity, "")
    for column, cell in implied.items():
        cells.setdefault(column, cell)
    source = "usual machines, its design included"
    if design:
        source = f"the design {design}, which {'was' if design in champion.designs else 'was never'} measured"
    hints = [name for name in rules.new_entity_hints if cells.keys().isdisjoint(_columns_of(name, champion))]
    if design and rules.design_column in hints:
        hints.remove(rules.design_column)
    note = f"values that are not given come from {source}"
    note += f"; add {', '.join(hints)} to narrow the interval" if hints else ""
    if entity not in cells:
        return [note] if missing or not design else []
    if design:
        cells[entity] = named.name
    near = f" (known names: {', '.join(match.candidates)})" if match.candidates else ""
    return [f"no data names the {rules.named_field} {text!r}{near}; {note}"]


def _columns_of(name: str, champion: Champion) -> tuple[str, ...]:
    """Return the columns that give what a field does."""
    required = champion.rules.new_entity_fields.get(name, ())
    field = champion.fields.fields.get(name)
    return (*required, *(field.columns if field else (name,)))
