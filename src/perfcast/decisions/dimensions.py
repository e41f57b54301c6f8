"""Dimensions of machines beside speed: memory, local disk and network, any of which may run out first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from perfcast.decisions.criteria import Candidate
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import DISK, NETWORK, MachineEntry
from perfcast.utils.errors import UserError

SPEED, MEMORY = "speed", "memory"
_UNITS = {MEMORY: "GB", DISK: "GB", NETWORK: "Gbit/s"}


class Amounts(NamedTuple):
    """Amounts that a machine has: `known` by dimension; `is_typical` is whether its memory is that of typical machines.

    Units: `memory` GB (a power of two), `disk` GB, `network` Gbit/s.
    """

    known: Mapping[str, float]
    is_typical: bool = False


class Held(NamedTuple):
    """Number of `machines` of a target, not rounded, that have what a fleet has; one of them has `amount`."""

    machines: float
    amount: float


def read_amounts(entry: MachineEntry, offer: Candidate, facts: Candidate, champion: Champion) -> Amounts:
    """Return what a machine has: its memory is the stated one, or that of an instance, or the typical one.

    Args: `facts` are those of `complete_facts`, `offer` what the entry carries.
    """
    stated = {DISK: offer.disk, NETWORK: offer.network}
    known = {name: value for name, value in stated.items() if value is not None}
    columns = champion.rules.presentation.memory_columns
    if not columns:
        return Amounts(known)
    cells = champion.fields.parse(entry.values, entry.label).cells
    memory, is_typical = math.prod(facts.cells[name] for name in columns), cells.keys().isdisjoint(columns)
    if is_typical:
        listed = list_instances(champion).get(champion.entity_names.find(str(cells.get(champion.entity))).key)
        memory, is_typical = (memory, True) if listed is None else (float(listed), False)
    return Amounts(known if math.isnan(memory) else {MEMORY: memory, **known}, is_typical)


def list_instances(champion: Champion) -> pd.Series:
    """Return the memory of every cloud instance that the champion knows, by name. Units: GB."""
    facts, column = champion.reference_data.entity_facts, champion.rules.presentation.instance_memory
    return facts[column].dropna() if column in facts else pd.Series(dtype=float)


def count_machines(fleet: Sequence[tuple[int, Amounts]], target: Amounts, name: str) -> dict[str, Held]:
    """Return how many of a target have what a fleet has, by dimension that the fleet has.

    Raises: UserError where the target does not state a dimension that the fleet needs.
    """
    needs = {}
    for dimension in _UNITS:
        needed = sum(count * each.known.get(dimension, 0.0) for count, each in fleet)
        if needed and dimension not in target.known:
            raise UserError(f"a target must give its {dimension}", f"{name} has none", f"add {dimension}=...")
        if needed:
            needs[dimension] = Held(needed / target.known[dimension], target.known[dimension])
    return needs


def name_totals(held: Mapping[str, Held], count: int | None = None) -> dict[str, float]:
    """Return what a number of a target has in total, without one what the fleet has, by dimension with its unit."""
    counts = {name: each.machines if count is None else count for name, each in held.items()}
    return {f"{_UNITS[name]} of {name}": counts[name] * each.amount for name, each in held.items()}


def describe_dimensions(machines: Sequence[Amounts], assumed: Sequence[int]) -> str:
    """Return which dimensions count. Args: `assumed` has what typical memory would need, where nobody states any."""
    if assumed:
        numbers = ", ".join(map(str, assumed))
        return f"memory is not counted, since no machine states it; that of typical machines would need {numbers}"
    count = sum(each.is_typical for each in machines)
    known = [name for name in _UNITS if any(name in each.known for each in machines)]
    counted = f"counted: {', '.join([SPEED, *known])}"
    return f"{counted}; {count} of {len(machines)} rows and targets have typical memory" if count else counted
