"""Candidates of a ranking: their names, prices and watts, from files or from flags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfcast.decisions.varied_fields import VariedField, combinations
from perfcast.inference.champion import Champion
from perfcast.inference.machine_fields import read_number
from perfcast.inference.machine_files import EXTRAS, NAME, PRICE, WATTS, MachineEntry, make_entry, tidy_text
from perfcast.schema.table import Tag
from perfcast.utils.errors import UserError

_LARGEST_PRICE = 1e9
_MAX_NAME_LETTERS = 80
_SMALLEST, _LARGEST = 1e-6, 1e12
"""Bounds of prices and watts: their powers and ratios stay finite."""


@dataclass(frozen=True)
class Candidate:
    """Fields of a candidate beside its machine. Units: `price` any currency, `watts` W."""

    line: int
    name: str | None
    price: float | None
    watts: float | None


def read_candidate(entry: MachineEntry) -> Candidate:
    """Return the name, price and watts of a machine. Raises: UserError for a value that cannot be used."""
    label, extras = entry.label, entry.carried
    for extra, value in extras.items():
        if extra not in EXTRAS and extra.strip().lower() in EXTRAS:
            fact = f"{label} has {extra.strip().lower()} twice"
            raise UserError("a machine must give every field once", fact, "leave one of them out")
        if extra in EXTRAS and value is not None and not isinstance(value, (str, int, float)):
            fact = f"{label} has {str(value)[:40]!r}"
            raise UserError(f"{extra} must be one value", fact, "write a text or a number")
    name = _text(extras.get(NAME))
    if name is not None and len(name) > _MAX_NAME_LETTERS:
        raise UserError(f"a name must be at most {_MAX_NAME_LETTERS} letters", f"{label} has {len(name)}")
    price, watts = _positive(extras.get(PRICE), PRICE, "", label), _positive(extras.get(WATTS), WATTS, "W", label)
    return Candidate(entry.line, name, price, watts)


def _text(value: object) -> str | None:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else tidy_text(str(value)) or None


def _positive(value: object, name: str, unit: str, label: str) -> float | None:
    text = _text(value)
    if text is None:
        return None
    unit_text = f" in {unit}" if unit else " without a currency"
    requirement = f"{name} must be a positive number{unit_text}"
    try:
        number = read_number(text, unit)
    except ValueError as error:
        raise UserError(requirement, f"{label} has {text[:40]!r}", str(error)) from None
    if number <= 0:
        raise UserError(requirement, f"{label} has {text[:40]!r}", "leave it empty if it is unknown")
    if not _SMALLEST <= number <= _LARGEST:
        requirement = f"{name} must be from {_SMALLEST:g} to {_LARGEST:g}{unit_text}"
        raise UserError(requirement, f"{label} has {text[:40]!r}", "correct it")
    return number


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
        named = {NAME: label[:_MAX_NAME_LETTERS], **values, **chosen}
        entries.append(make_entry(number, label, named)._replace(label=label))
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
        if name in prices:
            used.add(name)
        is_priced = name in prices and entry.carried.get(PRICE) in (None, "")
        priced.append(entry._replace(carried={**entry.carried, PRICE: prices[name]}) if is_priced else entry)
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
