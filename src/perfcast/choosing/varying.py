"""What is varied: `cores=64..192:16`, `memory.channels=8,12`, and every combination of the values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from perfcast.describing.entries import Vocabulary
from perfcast.describing.fields import Cell
from perfcast.errors import UserError
from perfcast.schema import Kind

MOST = 2000
"""Combinations that are forecast."""
_POINTS = 16
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)"
_UNIT = r"[A-Za-z][A-Za-z/]*"
_RANGE = re.compile(
    rf"\s*(?P<low>{_NUMBER})\s*(?P<low_unit>{_UNIT})?\s*\.\.\s*(?P<high>{_NUMBER})\s*(?P<high_unit>{_UNIT})?"
    rf"\s*(?::\s*(?P<step>{_NUMBER})\s*(?P<step_unit>{_UNIT})?)?\s*"
)


@dataclass(frozen=True)
class Point:
    """One value of what is varied: as it was written, and the cells it stands for."""

    text: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Varied:
    """A word and its values. `unit` is that of the one column of numbers it stands for; None where it is no number."""

    name: str
    points: tuple[Point, ...]
    unit: str | None

    @property
    def columns(self) -> set[str]:
        """The columns that its values stand for."""
        return {column for point in self.points for column in point.cells}


def read_varied(texts: Sequence[str], vocabulary: Vocabulary) -> tuple[Varied, ...]:
    """Read NAME=VALUES texts; values are joined by commas, or by | where they hold commas themselves, or are LOW..HIGH.

    LOW..HIGH:STEP goes up to HIGH; without a step, between whole numbers, it is at most 17 numbers, both ends among
    them. The same name may come again and adds values. Raises: UserError for what is no such text, for two names that
    stand for the same column, and for more than MOST combinations.
    """
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, said = text.partition("=")
        if not equals or not name.strip() or not said.strip():
            raise UserError("--vary must be NAME=VALUE,VALUE or NAME=LOW..HIGH", f"it is {text[:80]!r}")
        values.setdefault(name.strip().lower(), []).extend(_values(name.strip(), said))
    found = tuple(_varied(name, own, vocabulary) for name, own in values.items())
    by: dict[str, str] = {}
    for one in found:
        for column in sorted(one.columns):
            if by.setdefault(column, one.name) != one.name:
                fact = f"{by[column]} and {one.name} both give {column}"
                raise UserError("varied names must be independent", fact, "put what goes together in one of them")
    count = math.prod(len(one.points) for one in found)
    if count > MOST:
        sizes = " x ".join(f"{len(one.points)} of {one.name}" for one in found)
        raise UserError(f"at most {MOST} machines are forecast at once", f"{sizes} are {count}", "vary fewer values")
    return found


def combinations(varied: Sequence[Varied]) -> Iterator[tuple[Point, ...]]:
    """Give every combination of the values, the last name's values changing fastest."""
    return product(*(one.points for one in varied))


def _values(name: str, said: str) -> list[str]:
    pieces = [piece.strip() for piece in said.split("|" if "|" in said else ",")]
    found = []
    for piece in filter(None, pieces):
        match = _RANGE.fullmatch(piece)
        found += _range(name, match) if match else [piece]
        if len(found) > MOST:
            raise UserError(f"at most {MOST} machines are forecast at once", f"--vary {name} has more values")
    return found


def _range(name: str, match: re.Match[str]) -> list[str]:
    low, high = float(match["low"]), float(match["high"])
    unit = match["high_unit"] or match["low_unit"] or ""
    others = {match["low_unit"] or unit, match["step_unit"] or unit}
    if others != {unit}:
        raise UserError(f"the numbers of --vary {name} must have one unit", f"it is {match[0].strip()!r}")
    if not low < high:
        raise UserError(f"--vary {name} must go from a lower to a higher number", f"it is {match[0].strip()!r}")
    if match["step"] is None:
        numbers = _whole(name, low, high)
    else:
        step = float(match["step"])
        if step <= 0:
            raise UserError(f"the step of --vary {name} must be positive", f"it is {step:g}")
        count = math.floor((high - low) / step + 1e-9)
        if count >= MOST:
            raise UserError(f"at most {MOST} machines are forecast at once", f"--vary {name} has {count + 1} values")
        numbers = [round(low + place * step, 9) for place in range(count + 1)]
    return [f"{number:.12g} {unit}".strip() for number in numbers]


def _whole(name: str, low: float, high: float) -> list[float]:
    """Return whole numbers from low to high: the smallest even step that gives few enough, else a last, shorter one."""
    if low != int(low) or high != int(high):
        raise UserError(f"--vary {name} must say its step", f"it goes from {low:g} to {high:g}", "such as 2.4..3.6:0.2")
    width = int(high - low)
    least = max(1, math.ceil(width / _POINTS))
    even = [step for step in range(least, 2 * least + 1) if width % step == 0]
    found = [float(number) for number in range(int(low), int(high) + 1, even[0] if even else least)]
    return found if found[-1] == high else [*found, high]


def _varied(name: str, values: Sequence[str], vocabulary: Vocabulary) -> Varied:
    points: list[Point] = []
    for text in values:
        try:
            cells = vocabulary.cells({name: text}, "--vary")
        except UserError as error:
            hint = "join values by | where they hold commas" if len(values) > 1 else ""
            raise UserError(error.requirement, error.fact, "; ".join(filter(None, [error.remedy, hint]))) from None
        if cells and cells not in [point.cells for point in points]:
            points.append(Point(text, cells))
    if not points:
        raise UserError("--vary must have values", f"{name} has none")
    columns = {column for point in points for column in point.cells}
    only = vocabulary.columns[min(columns)]
    numeric = len(columns) == 1 and only.kind is Kind.NUMERICAL
    return Varied(name, tuple(points), only.unit if numeric else None)
