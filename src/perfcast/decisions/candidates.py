"""Candidates of a ranking that flags describe: one machine with some fields varied, and prices by entity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from perfcast.decisions.criteria import PRICE
from perfcast.decisions.varied_fields import VariedField, combinations
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.schema.table import Tag
from perfcast.utils.errors import UserError

_LARGEST_PRICE = 1e9


def make_candidates(values: Mapping[str, object], varied: Sequence[VariedField]) -> list[MachineEntry]:
    """Return a machine in all combinations of varied values, numbered from 1 and named after them.

    Raises: UserError when a field is given and varied.
    """
    names = {field.name for field in varied}
    twice = [name for name in values if name.strip().lower() in names]
    if twice:
        raise UserError(
            "a machine must give every field once", f"{twice[0]} is given and varied", "leave one of them out"
        )
    entries = []
    for number, points in enumerate(combinations(varied), start=1):
        chosen = {field.name: point.text for field, point in zip(varied, points, strict=True)}
        label = ", ".join(f"{name} {text}" for name, text in chosen.items())
        entries.append(MachineEntry(number, label, {"name": label[:80], **values, **chosen}))
    return entries


def add_prices(entries: Sequence[MachineEntry], texts: Sequence[str], champion: Champion) -> list[MachineEntry]:
    """Return candidates with the prices of `NAME=NUMBER` texts, or of one number for all; given prices stay.

    Raises: UserError for a text that is neither, and a name that no candidate has.
    """
    prices = dict(_read_price(text, champion) for text in texts)
    used: set[str] = set()
    priced = []
    for entry in entries:
        entity = _find_entity(entry.values, champion)
        name = entity if entity in prices else ""
        has_own = any(key.strip().lower() == PRICE and value not in (None, "") for key, value in entry.values.items())
        if name in prices:
            used.add(name)
        fields = {key: value for key, value in entry.values.items() if key.strip().lower() != PRICE}
        priced.append(
            entry if has_own or name not in prices else entry._replace(values={**fields, PRICE: prices[name]})
        )
    unused = sorted(set(prices) - used)
    if unused:
        raise UserError("--price must name what a candidate has", f"none has {unused[0]!r}", "correct the name")
    return priced


def _read_price(text: str, champion: Champion) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        price = float(number)
    except ValueError:
        price = math.nan
    if not 0 < price <= _LARGEST_PRICE:
        raise UserError("--price must be a positive number, or NAME=NUMBER such as H200=3.5", f"it is {text[:60]!r}")
    return champion.find_entity(name.strip()) if name.strip() else "", price


def _find_entity(values: Mapping[str, object], champion: Champion) -> str:
    """Return the entity of a candidate, "" where it names none."""
    entity = champion.reference_data.measured.column_of(Tag.ENTITY)
    for name, value in values.items():
        field = champion.fields.fields.get(name.strip().lower())
        columns = (name.strip().lower(),) if field is None else field.columns
        if entity in columns and isinstance(value, str):
            return champion.find_entity(value)
    return ""
