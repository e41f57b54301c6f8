"""Varied fields of a what-if grid: `cores=64..192:16`, `memory.channels=8,12`, and all combinations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from perfcast.inference.machine_fields import Cell, MachineFields
from perfcast.schema.table import Kind
from perfcast.utils.errors import UserError

MAX_COMBINATIONS = 2000
_MAX_STEPS = 16
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)"
_UNIT = r"[A-Za-z][A-Za-z/]*"
_RANGE = re.compile(
    rf"\s*(?P<low>{_NUMBER})\s*(?P<low_unit>{_UNIT})?\s*\.\.\s*(?P<high>{_NUMBER})\s*(?P<high_unit>{_UNIT})?"
    rf"\s*(?::\s*(?P<step>{_NUMBER})\s*(?P<step_unit>{_UNIT})?)?\s*"
)


@dataclass(frozen=True)
class Point:
    """One value of a varied field: its text and its cells."""

    text: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class VariedField:
    """Field with its values. `unit` is that of its one numerical column; None for any other field."""

    name: str
    points: tuple[Point, ...]
    unit: str | None

    @property
    def columns(self) -> set[str]:
        """The columns of its values."""
        return {column for point in self.points for column in point.cells}


def read_varied_fields(texts: Sequence[str], fields: MachineFields) -> tuple[VariedField, ...]:
    """Read NAME=VALUES texts; values are joined by commas, or by | where they hold commas themselves, or are LOW..HIGH.

    LOW..HIGH:STEP goes up to HIGH; without a step, between whole numbers, it is at most 17 numbers with both ends. The
    same name may be repeated and adds values. Raises: UserError for any other text, for two names of the same column,
    and for more than MAX_COMBINATIONS combinations.
    """
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        if not equals or not name.strip() or not listed.strip():
            raise UserError("--vary must be NAME=VALUE,VALUE or NAME=LOW..HIGH", f"it is {text[:80]!r}")
        values.setdefault(name.strip().lower(), []).extend(_split_values(name.strip(), listed))
    varied = tuple(_read_field(name, listed, fields) for name, listed in values.items())
    names: dict[str, str] = {}
    for field in varied:
        for column in sorted(field.columns):
            if names.setdefault(column, field.name) != field.name:
                quantity = fields.columns[column].meaning or column
                fact = f"{names[column]} and {field.name} both describe {quantity}"
                raise UserError("varied names must be independent", fact, "write both as one field")
    count = math.prod(len(field.points) for field in varied)
    if count > MAX_COMBINATIONS:
        sizes = " x ".join(f"{len(field.points)} of {field.name}" for field in varied)
        raise UserError(
            f"at most {MAX_COMBINATIONS} combinations are possible", f"{sizes} are {count}", "vary fewer values"
        )
    return varied


def combinations(varied: Sequence[VariedField]) -> Iterator[tuple[Point, ...]]:
    """Yield every combination of the values; those of the last name change fastest."""
    return product(*(field.points for field in varied))


def _split_values(name: str, listed: str) -> list[str]:
    pieces = [piece.strip() for piece in listed.split("|" if "|" in listed else ",")]
    values: list[str] = []
    for piece in filter(None, pieces):
        match = _RANGE.fullmatch(piece)
        values += _expand_range(name, match) if match else [piece]
        if len(values) > MAX_COMBINATIONS:
            raise UserError(f"at most {MAX_COMBINATIONS} combinations are possible", f"--vary {name} has more values")
    return values


def _expand_range(name: str, match: re.Match[str]) -> list[str]:
    low, high = float(match["low"]), float(match["high"])
    unit = match["high_unit"] or match["low_unit"] or ""
    others = {match["low_unit"] or unit, match["step_unit"] or unit}
    if others != {unit}:
        raise UserError(f"the numbers of --vary {name} must have one unit", f"it is {match[0].strip()!r}")
    if not low < high:
        raise UserError(f"--vary {name} must go from a lower to a higher number", f"it is {match[0].strip()!r}")
    if match["step"] is None:
        numbers = _whole_numbers(name, low, high)
    else:
        step = float(match["step"])
        if step <= 0:
            raise UserError(f"the step of --vary {name} must be positive", f"it is {step:g}")
        count = math.floor((high - low) / step + 1e-9)
        if count >= MAX_COMBINATIONS:
            raise UserError(
                f"at most {MAX_COMBINATIONS} combinations are possible", f"--vary {name} has {count + 1} values"
            )
        numbers = [round(low + index * step, 9) for index in range(count + 1)]
    return [f"{number:.12g} {unit}".strip() for number in numbers]


def _whole_numbers(name: str, low: float, high: float) -> list[float]:
    """Return at most 17 whole numbers from low to high with the smallest equal step, else with a shorter last step."""
    if low != int(low) or high != int(high):
        raise UserError(f"--vary {name} must have a step", f"it goes from {low:g} to {high:g}", "such as 2.4..3.6:0.2")
    width = int(high - low)
    smallest = max(1, math.ceil(width / _MAX_STEPS))
    even = [step for step in range(smallest, 2 * smallest + 1) if width % step == 0]
    numbers = [float(number) for number in range(int(low), int(high) + 1, even[0] if even else smallest)]
    return numbers if numbers[-1] == high else [*numbers, high]


def _read_field(name: str, values: Sequence[str], fields: MachineFields) -> VariedField:
    points: list[Point] = []
    for text in values:
        try:
            cells, _, notes = fields.parse({name: text}, "--vary")
            if notes:
                raise UserError(f"values of --vary {name} must be understood whole", notes[0])
        except UserError as error:
            hint = "join values by | where they hold commas" if len(values) > 1 else ""
            raise UserError(error.requirement, error.fact, "; ".join(filter(None, [error.remedy, hint]))) from None
        if cells and cells not in [point.cells for point in points]:
            points.append(Point(text, cells))
    if not points:
        raise UserError("--vary must have values", f"{name} has none")
    columns = {column for point in points for column in point.cells}
    only = fields.columns[min(columns)]
    numeric = len(columns) == 1 and only.kind is Kind.NUMERICAL
    return VariedField(name, tuple(points), only.unit if numeric else None)
