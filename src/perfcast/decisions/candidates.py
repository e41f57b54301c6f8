"""Candidates of a ranking: machines with a name, a price and their power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfcast.inference.machine_fields import read_number
from perfcast.inference.machine_files import MachineEntry
from perfcast.utils.errors import UserError

NAME, PRICE, WATTS = "name", "price", "watts"
_EXTRAS = (NAME, PRICE, WATTS)
_MAX_NAME_LETTERS = 80


@dataclass(frozen=True)
class Candidate:
    """Fields of a candidate beside its machine. Units: `price` any currency, `watts` W."""

    line: int
    name: str | None
    price: float | None
    watts: float | None


def split_candidates(entries: Sequence[MachineEntry]) -> tuple[list[MachineEntry], list[Candidate]]:
    """Separate names, prices and watts from machines. Raises: UserError for a value that cannot be used."""
    machines, candidates = [], []
    for line, label, values in entries:
        extras: dict[str, object] = {}
        for field, value in values.items():
            extra = field.strip().lower()
            if extra not in _EXTRAS:
                continue
            if extra in extras:
                fact = f"{label} has {extra} twice"
                raise UserError("a machine must give every field once", fact, "leave one of them out")
            if value is not None and not isinstance(value, (str, int, float)):
                fact = f"{label} has {str(value)[:40]!r}"
                raise UserError(f"{extra} must be one value", fact, "write a text or a number")
            extras[extra] = value
        name = _text(extras.get(NAME))
        if name is not None and len(name) > _MAX_NAME_LETTERS:
            raise UserError(f"a name must be at most {_MAX_NAME_LETTERS} letters", f"{label} has {len(name)}")
        price, watts = _positive(extras.get(PRICE), PRICE, "", label), _positive(extras.get(WATTS), WATTS, "W", label)
        candidates.append(Candidate(line, name, price, watts))
        fields = {field: value for field, value in values.items() if field.strip().lower() not in _EXTRAS}
        machines.append(MachineEntry(line, label, fields))
    return machines, candidates


def _text(value: object) -> str | None:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else " ".join(str(value).split()) or None


def _positive(value: object, name: str, unit: str, label: str) -> float | None:
    text = _text(value)
    if text is None:
        return None
    requirement = f"{name} must be a positive number" + (f" in {unit}" if unit else " without a currency")
    try:
        number = read_number(text, unit)
    except ValueError as error:
        raise UserError(requirement, f"{label} has {text[:40]!r}", str(error)) from None
    if number <= 0:
        raise UserError(requirement, f"{label} has {text[:40]!r}", "leave it empty if it is unknown")
    return number
