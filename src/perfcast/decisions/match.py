"""Match of one machine: the smallest of a list, such as cloud instances, that replace it, as a sizing of one machine.

The smallest has the least that nothing needs: of its dimensions, the one of which it has the most counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfcast.decisions.criteria import RefusedCandidate
from perfcast.decisions.dimensions import MEMORY, list_instances
from perfcast.decisions.fleet import SizedTarget, Sizing, size_fleet
from perfcast.decisions.sizing_request import SizingRequest
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import COUNT, MachineEntry, make_entry
from perfcast.inference.options import PredictOptions
from perfcast.inference.suites import Measured
from perfcast.utils.errors import UserError

INSTANCES = "instances"
_BATCH = 50
"""Machines that are sized together."""
_ROUNDING = 1e-9


def find_match(
    entry: MachineEntry,
    among: Sequence[MachineEntry] | None,
    champion: Champion,
    request: SizingRequest,
    options: PredictOptions,
    *,
    count: int = 10,
    measured: Measured = (),
) -> Sizing:
    """Return the machines of a list, or without one the cloud instances, one of which replaces a machine.

    The smallest `count` of them come in their order.
    Raises: UserError where the machine cannot be used, or nothing replaces it.
    """
    fleet = [entry._replace(carried={**entry.carried, COUNT: 1})]

    def size(onto: Sequence[MachineEntry]) -> Sizing:
        return size_fleet(fleet, onto, champion, request, options, measured=measured, brief=True)

    listed, rooms = list(among or ()), [0.0] * len(among or ())
    if among is None:
        memory = list_instances(champion).sort_values(kind="stable")
        if memory.empty:
            raise UserError("instances must be known", "this champion knows none", "name a file with --among")
        needed = size(_name_machines(memory.index[-1:], champion)).targets[0].needs.get(MEMORY, 0.0) * memory.iloc[-1]
        memory = memory[memory >= needed - _ROUNDING]
        # of equal shares of a host, the one with the least memory that is enough
        hosts = champion.reference_data.entity_facts.drop(columns=champion.rules.presentation.instance_memory)
        memory = memory[~hosts.loc[memory.index].duplicated()]
        listed, rooms = _name_machines(memory.index, champion), (memory / max(needed, _ROUNDING)).tolist()
    matches, refused = list[SizedTarget](), list[RefusedCandidate]()
    for start in range(0, len(listed), _BATCH):
        # later instances have more memory than enough smaller ones have too much of anything
        if len(matches) == count and rooms[start] > _find_room(matches[-1]):
            break
        sizing = size(listed[start : start + _BATCH])
        refused += sizing.refused
        matches = sorted([*matches, *(each for each in sizing.targets if each.needed == 1)], key=_find_room)[:count]
    if not matches:
        fact = f"none of {len(listed)} does with {100 * request.sure:g} %"
        raise UserError(f"one of the list must replace {entry.label}", fact, "lower --sure, or add larger ones")
    return replace(sizing, targets=tuple(matches), refused=tuple(refused))


def _name_machines(names: Iterable[str], champion: Champion) -> list[MachineEntry]:
    return [make_entry(line, name, {champion.named_field: name}) for line, name in enumerate(names, start=1)]


def _find_room(target: SizedTarget) -> float:
    """Return what one machine has over what is needed, in the dimension in which it has the most."""
    return 1 / min(target.needs.values())
