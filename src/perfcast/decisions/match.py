"""Match of one machine: the smallest of a list, such as the cloud instances, that replace it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.decisions.criteria import RefusedCandidate, read_candidate
from perfcast.decisions.dimensions import MEMORY, SPEED, count_machines, list_instances, read_amounts
from perfcast.decisions.joint_scores import predict_scores
from perfcast.decisions.ranking import complete_facts
from perfcast.decisions.sizing_request import SizingRequest
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry, make_entry
from perfcast.inference.options import PredictOptions
from perfcast.inference.prediction import ESTIMATE, ChampionAnswer, lowest_trust
from perfcast.inference.suites import Measured
from perfcast.utils.errors import UserError

INSTANCES = "instances"
_BATCH = 100
"""Machines that are drawn jointly with the replaced one."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class MatchedMachine:
    """Machine that replaces another: `ratio` is its speed over that of the other, `suffices` whether it is as fast.

    `room` is what it has over what is needed, by dimension; that of speed with the asked probability. `limiting` has
    the least. `totals` are those of `Presentation.find_sizes`. Units: `memory` GB.
    """

    line: int
    name: str
    machine: str
    ratio: float
    ratio_low: float
    ratio_high: float
    suffices: float
    memory: float | None
    limiting: str
    room: Mapping[str, float]
    totals: Mapping[str, float]
    trust: str


@dataclass(frozen=True, repr=False)
class Match(ChampionAnswer):
    """The `machines` of a list of `tried` that replace the `replaced` one, the smallest first."""

    level: float
    sure: float
    mix: Mapping[str, float]
    replaced: str
    memory: float | None
    tried: int
    machines: tuple[MatchedMachine, ...]
    notes: tuple[str, ...] = ()
    kind: str = ESTIMATE
    refused: tuple[RefusedCandidate, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per machine, the smallest first."""
        rows: list[dict[str, Any]] = []
        for each in self.machines:
            room = {f"room of {name}": value for name, value in each.room.items()}
            plain = {name: value for name, value in vars(each).items() if not isinstance(value, Mapping)}
            rows.append({**plain, **each.totals, **room})
        return pd.DataFrame(rows)


def find_match(
    entry: MachineEntry,
    among: Sequence[MachineEntry] | None,
    champion: Champion,
    request: SizingRequest,
    options: PredictOptions,
    *,
    count: int = 10,
    measured: Measured = (),
) -> Match:
    """Find the machines of a list, or without one the cloud instances, that replace a machine.

    The smallest has the least room in the dimension in which it has the most. Of instances with the same share of the
    same host, the one with the least memory that is enough counts. Errors are drawn jointly with those of the machine.
    Raises: UserError where the machine cannot be used, or nothing replaces it.
    """
    options = replace(options, neighbors=0, explain=False)
    asked = _Batch([entry], champion, request, options, measured)
    memory = asked.held[0].known.get(MEMORY)
    listed, least = list(among or ()), [0.0] * len(among or ())
    if among is None:
        listed, least = _list_instances(champion, (memory or 1.0) * request.factor)
    found, refused, tried = list[MatchedMachine](), list[RefusedCandidate](), 0
    # instances come by their memory: those after enough smaller ones need no prediction
    while tried < len(listed) and not (len(found) >= count and least[tried] > _find_most(found[count - 1])):
        batch = _Batch([entry, *listed[tried : tried + _BATCH]], champion, request, options, measured)
        found = sorted([*found, *batch.list_matches()], key=lambda each: (_find_most(each), each.line))
        refused += batch.list_refused()
        tried = min(tried + _BATCH, len(listed))
    if not found:
        fact = f"none of {len(listed)} does with {100 * request.sure:g} %"
        raise UserError(f"a machine of the list must replace {entry.label}", fact, "lower --sure, or add larger ones")
    source = "that of typical machines" if asked.held[0].is_typical else "as stated"
    titles = champion.rules.names.task_titles
    return Match(
        *champion.identity,
        month=champion.name_month(options.when),
        level=options.level,
        sure=request.sure,
        mix={titles.get(each.task, each.task): share for each, share in request.mix.items()},
        replaced=asked.scores.predictions[0].machine,
        memory=memory,
        tried=tried,
        machines=tuple(found[:count]),
        notes=(*([] if memory is None else [f"memory of the replaced machine: {source}"]), *champion.notices),
        refused=tuple(refused),
    )


def _find_most(matched: MatchedMachine) -> float:
    return max(matched.room.values())


class _Batch:
    """The replaced machine, and some of the list: joint scores, and what each has beside speed, by place."""

    def __init__(
        self,
        entries: Sequence[MachineEntry],
        champion: Champion,
        request: SizingRequest,
        options: PredictOptions,
        measured: Measured,
    ) -> None:
        self._entries, self._request, self._level = entries, request, options.level
        placed = [each._replace(line=place) for place, each in enumerate(entries)]
        self._offers = {place: read_candidate(each) for place, each in enumerate(entries)}
        scores, errors = predict_scores(placed, champion, request.mix, options, measured)
        if scores is None or 0 in errors:
            raise errors[0]
        self.scores, self._errors = scores, dict(errors)
        self._facts = complete_facts(scores.machines, self._offers, champion, assume=options.assume)
        self.held = {
            place: read_amounts(placed[place], self._offers[place], facts, champion)
            for place, facts in self._facts.items()
        }

    def list_refused(self) -> list[RefusedCandidate]:
        """Return the machines that cannot be used."""
        refused = ((self._entries[place], error) for place, error in self._errors.items())
        return [RefusedCandidate(entry.line, entry.label, str(error)) for entry, error in refused]

    def list_matches(self) -> list[MatchedMachine]:
        """Return the machines that replace the first."""
        matches = []
        for place in self.held:
            try:
                matched = self._match(place)
            except UserError as error:
                self._errors[place] = error
                continue
            if place and min(matched.room.values()) >= 1 - _ROUNDING:
                matches.append(matched)
        return matches

    def _match(self, place: int) -> MatchedMachine:
        scores, request, held = self.scores, self._request, self.held
        offer, logs = self._offers[place], scores.joint.logs
        exact = count_machines([(1, held[0])], held[place], self._entries[place].label)
        if held[0].is_typical and held[place].is_typical:
            exact.pop(MEMORY, None)
        rows = {each.task: scores.row_of[place, each.task] for each in request.mix}
        needs = np.zeros(logs.shape[1])
        for each, share in request.mix.items():
            needs += share * np.exp(logs[scores.row_of[0, each.task]] - logs[rows[each.task]])
        level = self._level
        sure, high, middle, low = np.quantile(
            needs, [request.sure, (1 - level) / 2, 0.5, (1 + level) / 2], method="inverted_cdf"
        )
        room = {name: float(1 / (need * request.factor)) for name, need in {SPEED: sure, **exact}.items()}
        return MatchedMachine(
            line=self._entries[place].line,
            name=offer.name or self._entries[place].label,
            machine=scores.predictions[place].machine,
            ratio=float(1 / middle),
            ratio_low=float(1 / low),
            ratio_high=float(1 / high),
            suffices=float(np.mean(needs * request.factor <= 1 + _ROUNDING)),
            memory=held[place].known.get(MEMORY),
            limiting=min(room, key=lambda name: room[name]),
            room=room,
            totals=self._facts[place].sizes,
            trust=lowest_trust(scores.estimates[row] for row in rows.values()),
        )


def _list_instances(champion: Champion, needed: float) -> tuple[list[MachineEntry], list[float]]:
    """Return the cloud instances with enough memory by it, one of each share of a host, and their rooms of memory.

    Raises: UserError without any.
    """
    memory = pd.Series(list_instances(champion), dtype=float).sort_values(kind="stable")
    memory = memory[memory >= needed * (1 - _ROUNDING)]
    if memory.empty:
        raise UserError("an instance must have enough memory", "the champion knows none", "name a file with --among")
    facts = champion.reference_data.entity_facts.loc[memory.index]
    memory = memory[~facts.drop(columns=champion.rules.presentation.instance_memory).duplicated()]
    named = enumerate(memory.index, start=1)
    listed = [make_entry(line, name, {champion.named_field: name}) for line, name in named]
    return listed, (memory / needed).tolist()
