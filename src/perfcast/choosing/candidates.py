"""Candidates of a file: machines with what they cost, the power they draw and what they are called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfcast.describing.files import Entry
from perfcast.describing.units import read_number
from perfcast.errors import UserError

NAME, PRICE, WATTS = "name", "price", "watts"
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
        own = {word.strip().lower(): value for word, value in said.items()}
        name = _text(own.get(NAME))
        if name is not None and len(name) > _LONGEST:
            raise UserError(f"a name must be at most {_LONGEST} letters", f"{where} has {len(name)}")
        price, watts = _positive(own.get(PRICE), PRICE, "", where), _positive(own.get(WATTS), WATTS, "W", where)
        candidates.append(Candidate(line, name, price, watts))
        kept = {word: value for word, value in said.items() if word.strip().lower() not in (NAME, PRICE, WATTS)}
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
