"""Machines that leave out a column with an answer for each value: one machine for every value that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfcast.inference.champion import Champion
from perfcast.inference.impute import find_refusals, impute_known
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine, ParsedMachines, parse_machine, stack_machines
from perfcast.schema.table import Tag


def expand_machines(machines: Sequence[ParsedMachine], champion: Champion) -> list[ParsedMachine]:
    """Return every machine that leaves out the enumerated column once for each value, the others as they are.

    Values are those of `DescriptionRules.list_alternatives` and those of the measured results of the entity, without
    those that break a limit, unless all do: then the first one stands for them.
    """
    column, reference_data = champion.rules.enumerated, champion.reference_data
    open_places = [place for place, machine in enumerate(machines) if column and column not in machine.cells]
    if column is None or not open_places:
        return list(machines)
    cells = impute_known(stack_machines([machines[place] for place in open_places], champion).cells, champion).cells
    entities = cells[reference_data.measured.column_of(Tag.ENTITY)].tolist()
    sold = champion.rules.list_alternatives(cells)
    by_place: dict[int, list[ParsedMachine]] = {}
    for place, entity, values in zip(open_places, entities, sold, strict=True):
        machine, listed = machines[place], sorted({*values, *reference_data.list_values(column, entity)})
        by_place[place] = [replace(machine, cells={**machine.cells, column: value}) for value in listed] or [machine]
    stacked = stack_machines([machine for listed in by_place.values() for machine in listed], champion)
    refused = find_refusals(stacked, champion)
    is_refused = iter(key in refused for key in stacked.cells.index.tolist())
    for place, alternatives in by_place.items():
        possible = [machine for machine in alternatives if not next(is_refused)] or alternatives[:1]
        shown = " and ".join(f"{machine.cells[column]:g}" for machine in possible if column in machine.cells)
        note = f"{column} is not given: there is an answer for {shown}"
        by_place[place] = [replace(machine, notes=(*machine.notes, note)) if shown else machine for machine in possible]
    return [each for place, machine in enumerate(machines) for each in by_place.get(place, [machine])]


def parse_alternatives(entries: Sequence[MachineEntry], champion: Champion) -> ParsedMachines:
    """Parse machines, each as often as `expand_machines` returns it. Raises: see `parse_machines`."""
    return stack_machines(expand_machines([parse_machine(entry, champion) for entry in entries], champion), champion)
