"""Machines in a person's words, understood with what a champion knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from perfcast.describing.fields import Cell
from perfcast.describing.files import Entry
from perfcast.errors import UserError
from perfcast.forecasting.champion import Champion
from perfcast.schema import Tag

_CORES = ("cores_per_chip_stated", "cores_per_chip_part", "cores_enabled_total")
_CLOCK = "base_mhz"


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
    own = champion.vocabulary.cells(said, where)
    if not own:
        raise UserError("a machine must be described by something", f"{where} says nothing", "see --help")
    part = champion.knowledge.measured.one(Tag.ENTITY)
    notes: tuple[str, ...] = ()
    if part in own and not champion.knowledge.parts.empty:
        own[part], notes = _part(str(own[part]), own, champion, where)
    return Understood(line, own, notes)


def together(machines: Sequence[Understood], champion: Champion) -> Described:
    """Return machines as one table; their lines must differ."""
    frame = champion.vocabulary.frame([one.cells for one in machines], [one.line for one in machines])
    return Described(frame, {one.line: one.notes for one in machines if one.notes})


def _part(text: str, own: Mapping[str, Any], champion: Champion, where: str) -> tuple[str, tuple[str, ...]]:
    """Return the key of the part that is meant and what must be said of that; see `PartNames`."""
    found = champion.part_names.find(text)
    if found.key is not None:
        return found.key, () if found.exact else (f"the processor {text!r} was read as {found.key!r}",)
    if _CLOCK in own and any(name in own for name in _CORES):
        return text, (f"no data names the processor {text!r}: it is forecast by what was said of it",)
    remedy = "describe a new one by cores and clock at least (channels, l3, tdp, family and turbo tell more)"
    if found.candidates:
        remedy = f"say which one is meant, {', '.join(found.candidates)}, or {remedy}"
    raise UserError("the processor must be a known one", f"{where} has {text!r}", remedy)
