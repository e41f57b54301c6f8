"""Machines in a person's words, understood with what a champion knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pandas as pd

from perfcast.describing.fields import Cell
from perfcast.describing.files import Entry
from perfcast.describing.names import Found
from perfcast.errors import UserError
from perfcast.forecasting.champion import Champion
from perfcast.forecasting.knowledge import completion_of
from perfcast.schema import Tag

_OFFERED = 6


@dataclass(frozen=True)
class Described:
    """Machines as they were understood, and what must be said of that by line.

    Shapes: `frame` has the columns of the champion's vocabulary, index `LINE`.
    """

    frame: pd.DataFrame
    notes: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True)
class Understood:
    """One machine as it was understood: its line, its cells by column, and what must be said of that."""

    line: int
    cells: Mapping[str, Cell]
    notes: tuple[str, ...] = ()


def describe(entries: Sequence[Entry], champion: Champion) -> Described:
    """Read what was said of machines; names of parts are found however they were typed.

    Raises: UserError for the first thing that cannot be used, an unknown or ambiguous part among them.
    """
    return together([understand(entry, champion) for entry in entries], champion)


def understand(entry: Entry, champion: Champion) -> Understood:
    """Read what was said of one machine. Raises: UserError as `describe` does."""
    line, where, said = entry
    own: dict[str, Cell] = champion.vocabulary.cells(said, where)
    if not own:
        raise UserError("a machine must be described by something", f"{where} says nothing", "see --help")
    part, task = (champion.knowledge.measured.column_of(tag) for tag in (Tag.ENTITY, Tag.TASK))
    if task in own:  # an unknown one is told when machines are completed
        own[task] = champion.task_names.find(str(own[task])) or own[task]
    module = completion_of(champion.dataset)
    notes: tuple[str, ...] = ()
    if module:
        check_design(own, champion, module.DESIGN, where)
        found = champion.part_names.find(str(own[part])) if part in own else Found(None)
        if found.key is None:
            notes = _new_part(own, found, part, module.NEW_PART, where)
        else:
            notes = () if found.exact else (f"the processor {own[part]!r} was read as {found.key!r}",)
            own[part] = found.key
    return Understood(line, own, notes)


def together(machines: Sequence[Understood], champion: Champion) -> Described:
    """Return machines as one table; their lines must differ."""
    frame = champion.vocabulary.frame([one.cells for one in machines], [one.line for one in machines])
    return Described(frame, {one.line: one.notes for one in machines if one.notes})


def _new_part(
    own: Mapping[str, Any], found: Found, part: str, needed: Mapping[str, Sequence[str]], where: str
) -> tuple[str, ...]:
    """Return what must be said of a part that nothing names. Raises: UserError when too little was said of it."""
    missing = [word for word, columns in needed.items() if not any(name in own for name in columns)]
    if missing:
        remedy = f"or describe a new one: add {', '.join(missing)}"
        if found.candidates:
            remedy = f"say which is meant, {', '.join(found.candidates)}, {remedy}"
        fact = f"{where} has {own[part]!r}" if part in own else f"{where} names none"
        raise UserError("the processor must be a known one", fact, remedy)
    if part not in own:
        return ()
    return (f"no data names the processor {own[part]!r}: it is forecast by what was said of it",)


def check_design(own: Mapping[str, Any], champion: Champion, design: str, where: str) -> None:
    """Refuse a design that nothing was measured of: a new one is forecast by the one that is nearest to it."""
    known = champion.designs
    if design in own and own[design] not in known:
        near = get_close_matches(str(own[design]), known, n=_OFFERED, cutoff=0.4) or known[:_OFFERED]
        remedy = f"name the known one that comes nearest: {', '.join(near)}"
        raise UserError(f"{design} must be one that was measured", f"{where} has {own[design]!r}", remedy)
