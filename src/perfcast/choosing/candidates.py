"""Candidates of a file: machines with what they cost, the power they draw and what they are called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfcast.describing.files import Entry
from perfcast.describing.units import read_number
from perfcast.errors import UserError

NAME, PRICE, WATTS = "name", "price", "watts"
_EXTRAS = (NAME, PRICE, WATTS)
_LONGEST = 80


@dataclass(frozen=True)
class Candidate:
    """What was said of a candidate beside its machine. Units: `price` any currency, `watts` W."""

    line: int
    name: str | None
    price: float | None
    watts: float | None


def split_candidates(entries: Sequence[Entry]) -> tuple[list[Entry], list[Candidate]]:
    """Take names, prices and watts from what was said of machines. Raises: UserError when one of them is none."""
    machines, candidates = [], []
    for line, where, said in entries:
        own: dict[str, object] = {}
        for word, value in said.items():
            extra = word.strip().lower()
            if extra in own and extra in _EXTRAS:
                raise UserError(
                    "a machine must say a thing once", f"{where} has {extra} twice", "leave one of them out"
                )
            if extra in _EXTRAS and value is not None and not isinstance(value, (str, int, float)):
                raise UserError(
                    f"{extra} must be one value", f"{where} has {str(value)[:40]!r}", "write a text or a number"
                )
            own[extra] = value
        name = _text(own.get(NAME))
        if name is not None and len(name) > _LONGEST:
            raise UserError(f"a name must be at most {_LONGEST} letters", f"{where} has {len(name)}")
        price, watts = _positive(own.get(PRICE), PRICE, "", where), _positive(own.get(WATTS), WATTS, "W", where)
        candidates.append(Candidate(line, name, price, watts))
        kept = {word: value for word, value in said.items() if word.strip().lower() not in _EXTRAS}
        machines.append((line, where, kept))
    return machines, candidates


def _text(value: object) -> str | None:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else " ".join(str(value).split()) or None


def _positive(value: object, name: str, unit: str, where: str) -> float | None:
    words = _text(value)
    if words is None:
        return None
    requirement = f"{name} must be a positive number" + (f" in {unit}" if unit else " without a currency")
    try:
        number = read_number(words, unit)
    except ValueError as error:
        raise UserError(requirement, f"{where} has {words[:40]!r}", str(error)) from None
    if number <= 0:
        raise UserError(requirement, f"{where} has {words[:40]!r}", "leave it empty where it is unknown")
    return number
