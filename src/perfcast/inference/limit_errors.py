"""Errors of machines that break a limit of the dataset's rules or name an unknown task, with the field as typed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfcast.inference.cells import Cells
from perfcast.inference.champion import Champion
from perfcast.inference.imputation import Violation
from perfcast.inference.machine_fields import TypedField
from perfcast.inference.parse import ParsedMachines
from perfcast.schema.table import Tag
from perfcast.utils.errors import UserError


def list_errors(cells: Cells, machines: ParsedMachines, champion: Champion) -> Iterator[tuple[int, UserError]]:
    """Yield line and error of every limit that a machine breaks, then of every unknown task."""
    for violation in champion.rules.find_violations(cells):
        field, fact = name_field(violation, machines, cells, champion)
        label = machines.label_of(violation.line)
        text = f"{fact} ({label})" if label[-1:].isdigit() else fact
        yield violation.line, UserError(field, text, violation.remedy)
    task = champion.reference_data.measured.column_of(Tag.TASK)
    for line, name in zip(cells.index.tolist(), cells[task].tolist(), strict=True):
        if name is None or name in champion.tasks:
            continue
        typed = machines.typed.get(line, {}).get(task, TypedField(task, str(name)))
        fact = f"{machines.label_of(line)} has {typed.text!r}"
        yield line, UserError(f"{typed.name} must be one of {', '.join(champion.tasks)}", fact, "or leave it out")


def name_field(violation: Violation, machines: ParsedMachines, cells: Cells, champion: Champion) -> tuple[str, str]:
    """Return the wrong field as the user typed it, and the fact with the name of the CPU model."""
    typed = machines.typed.get(violation.line, {})
    first = violation.columns[0]
    field = next((typed[name].name for name in violation.columns if name in typed), champion.fields.name_of(first))
    entity = champion.reference_data.measured.column_of(Tag.ENTITY)
    key = cells[entity][np.flatnonzero(cells.index == violation.line)[0]]
    cpu = typed.get(entity, TypedField(entity, "the processor" if key is None else key)).text
    return field, violation.fact.replace("{cpu}", cpu)
