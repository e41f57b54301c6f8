"""Fields that describe a machine: columns, their short names, units, and the check of every typed value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from perfcast.schema.table import Column, Kind, Tag
from perfcast.utils.errors import UserError

Cell = str | float
"""A value of a described machine, typed as its column is; dates are text, YYYY-MM."""

MONTH = "a month such as 2026-03, from 1990 to 2099"
"""Requirement of a month in errors; see `is_month`."""

MAX_LETTERS = 500
"""Longest value that is read."""

_GROUP_NAMES = {"provenance": "dates"}
"""Names of groups in answers: of the provenance of a result, only dates describe a machine."""

_MAX_READINGS = 20_000
"""Texts whose reading is remembered: a batch repeats them."""
_IDENTIFIERS = frozenset((Tag.ROW, Tag.BLOCK))
"""Tags of columns that name published results."""
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
_FIRST_YEAR, _YEAR_AFTER = "1990", "2100"
_SHOWN_LETTERS = 60
_LARGEST_INTEGER = 10**MAX_LETTERS

_NUMBER = re.compile(r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,3})?)\s*([a-z/]*)", re.IGNORECASE)
_BINARY = {"kb": 2.0**10, "kib": 2.0**10, "mb": 2.0**20, "mib": 2.0**20, "gb": 2.0**30, "gib": 2.0**30}
_BINARY |= {"tb": 2.0**40, "tib": 2.0**40}
_DECIMAL = {"mb": 1e6, "gb": 1e9, "tb": 1e12}
_UNITS: dict[str, dict[str, float]] = {
    "MHz": {"mhz": 1.0, "ghz": 1000.0},
    "MT/s": {"mt/s": 1.0, "mts": 1.0, "gt/s": 1000.0},
    **{unit: {name: size / _BINARY[unit.lower()] for name, size in _BINARY.items()} for unit in ("KiB", "MiB", "GiB")},
    "GB": {name: size / 1e9 for name, size in _DECIMAL.items()},
    "W": {"w": 1.0, "kw": 1000.0},
    "Gbit/s": {"gbit/s": 1.0, "gbps": 1.0, "mbit/s": 1e-3},
    "ms": {"ms": 1.0, "s": 1000.0, "us": 1e-3},
    "bit": {"bit": 1.0, "bits": 1.0},
}
"""Declared unit -> accepted units in lower case -> factor. Vendors sell memory and caches in powers of two, whatever
they call the unit, and storage in powers of ten."""


def read_number(text: str, unit: str) -> float:
    """Return a number in the declared unit; a number without a unit is in the declared one.

    Raises: ValueError, with the reason, for a text that is no finite number or has another kind of unit.
    """
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        raise ValueError("it is no number")
    value, typed_unit = float(match[1]), match[2].lower()
    units = _UNITS.get(unit, {})
    if typed_unit and typed_unit not in units:
        allowed = f"written in {', '.join(units)} (any case)" if units else "without a unit"
        raise ValueError(f"it must be {allowed}")
    value *= units.get(typed_unit, 1.0)
    if not math.isfinite(value):
        raise ValueError("it is no finite number")
    return value


def is_month(text: str) -> bool:
    """Return whether a text is a month YYYY-MM in which a machine can have been made or measured."""
    return _MONTH.fullmatch(text) is not None and _FIRST_YEAR <= text < _YEAR_AFTER


def name_group(column: Column) -> str:
    """Return the group of a column as users read and type it."""
    return _GROUP_NAMES.get(column.group, column.group)


class Reading(NamedTuple):
    """Cells of a typed text by column; `remark` says what of the text was not understood."""

    cells: Mapping[str, Cell]
    remark: str = ""


@dataclass(frozen=True)
class Field:
    """Short name of one or more columns, such as `memory` for the number, size and kind of modules.

    `read` turns the typed text into cells of `columns`; what it does not understand is ignored with a note. It raises
    ValueError for a text of which nothing may be ignored.
    """

    name: str
    meaning: str
    example: str
    columns: tuple[str, ...]
    read: Callable[[str], Reading]
    aliases: tuple[str, ...] = ()


def alias_field(name: str, column: str, meaning: str, example: str, *aliases: str) -> Field:
    """Return a field that is another name of one column; its text is read as the column's is."""
    return Field(name, meaning, example, (column,), lambda text: Reading({column: text}), aliases)


_COUNTED = re.compile(
    r"(?:(?P<digits>\d{1,6})(?: x |x(?!eon|cpu-) ?| ?[×*] ?|[ -]?(?:s|p|sockets?|way) )"
    r"|(?P<word>single|one|dual|two|quad|four|eight)(?:[ -]sockets?)?[ -](?!cores?\b))(?P<name>\S.*)",
    re.IGNORECASE,
)
"""A number of units before a name: `2x NAME`, `2S NAME`, `dual NAME`; a `dual-core` one is one unit.

The name of an instance such as `12xCPU-48GB` has no number before it.
"""
_COUNTS = {"single": 1, "one": 1, "dual": 2, "two": 2, "quad": 4, "four": 4, "eight": 8}


def counted_field(field: Field, count: str, find: Callable[[str], str | None] = lambda text: None) -> Field:
    """Return a field of one name that may have a number before it, the cell of the column `count`.

    Args: `find` returns the known spelling of a name, None where it knows none.
    """
    (column,) = field.columns

    def read(text: str) -> Reading:
        match = _COUNTED.fullmatch(" ".join(text.split()))
        name = match["name"] if match else text
        cells: dict[str, Cell] = {column: find(name) or name}
        if match:
            cells[count] = float(match["digits"] or _COUNTS[match["word"].lower()])
        return Reading(cells)

    return replace(field, columns=(column, count), read=read)


@dataclass(frozen=True)
class TypedField:
    """Name of a field and its value, both as the user typed them."""

    name: str
    text: str


class ParsedFields(NamedTuple):
    """Cells of one machine by column, the field that each of them was typed in, and notes on ignored texts."""

    cells: dict[str, Cell]
    typed: dict[str, TypedField]
    notes: tuple[str, ...]


class MachineFields:
    """The names that may describe a machine: columns of a table, and short fields."""

    def __init__(
        self, columns: Sequence[Column], fields: Iterable[Field] = (), whole: Collection[str] = frozenset()
    ) -> None:
        """Keep the names; `whole` are columns of whole numbers, such as counts."""
        self._whole = frozenset(whole)
        self.columns = {column.name: column for column in columns}
        self.fields = {name: field for field in fields for name in (field.name, *field.aliases)}
        self._read_text = lru_cache(_MAX_READINGS)(lambda field, text: field.read(text))

    def get(self, name: str) -> Column | Field | None:
        """Return the column or field of a typed name, or of a heading such as `Clock (GHz)`, None if there is none."""
        key = name.strip().lower()
        return self.fields.get(key) or self.columns.get(key) or self.columns.get("_".join(re.findall("[a-z0-9]+", key)))

    def find_near(self, name: str, cutoff: float = 0.5) -> list[str]:
        """Return the names that look like a typed one, the nearest first."""
        return get_close_matches(name.strip().lower(), [*self.fields, *self.columns], n=3, cutoff=cutoff)

    def find(self, name: str, label: str) -> Column | Field:
        """Return the column or field of a typed name. Raises: UserError with the nearest names when there is none."""
        if match := self.get(name):
            return match
        near, known = self.find_near(name), [*self.fields, *self.columns]
        hint = f"the nearest are {', '.join(near)}" if near else f"such as {', '.join(known[:8])}"
        raise UserError("a machine must be described by known names", f"{label} has {name[:_SHOWN_LETTERS]!r}", hint)

    def name_of(self, column: str) -> str:
        """Return the short name of a column: that of a field for this column alone, else of a field that reads it."""
        alone = [field.name for field in self.fields.values() if field.columns == (column,)]
        among = [field.name for field in self.fields.values() if column in field.columns]
        return next(iter([*alone, *among]), column)

    def parse(self, values: Mapping[str, object], label: str) -> ParsedFields:
        """Return the cells of one machine; empty values are skipped. `label` names the machine in errors.

        Raises: UserError, one line, for the first value that cannot be used.
        """
        cells: dict[str, Cell] = {}
        typed: dict[str, TypedField] = {}
        notes: list[str] = []
        for name, value in values.items():
            field = self.find(name, label)
            text = _as_text(value, name, label)
            if not text:
                continue
            if isinstance(field, Column) and not _IDENTIFIERS.isdisjoint(field.tags):
                notes.append(f"{name.strip()} {text[:_SHOWN_LETTERS]!r} was ignored: it names a result, not a machine")
                continue
            read = self._read(field, text, name.strip(), label)
            if read.remark:
                notes.append(f"{name.strip()} {text[:_SHOWN_LETTERS]!r} {read.remark}")
            for column, cell in read.cells.items():
                if column in cells and cells[column] != cell:
                    requirement = f"{typed[column].name} and {name} must agree"
                    raise UserError(requirement, f"{label} gives them different values", "leave one of them out")
                cells[column], typed[column] = cell, TypedField(name.strip(), text)
        return ParsedFields(cells, typed, tuple(notes))

    def cells(self, values: Mapping[str, object], label: str) -> dict[str, Cell]:
        """Return the cells of one machine by column; see `parse`."""
        return self.parse(values, label).cells

    def _read(self, field: Column | Field, text: str, name: str, label: str) -> Reading:
        if isinstance(field, Column):
            return Reading({field.name: self._read_cell(text, field, name, label)})
        try:
            read = self._read_text(field, text) if len(field.columns) > 1 else field.read(text)
        except ValueError:
            requirement = f"{name} must be {field.meaning}, such as {field.example!r}"
            raise UserError(requirement, f"{label} has {text[:_SHOWN_LETTERS]!r}") from None
        if len(field.columns) == 1:
            ((column, cell),) = read.cells.items()
            return Reading({column: self._read_cell(str(cell), self.columns[column], name, label)})
        known = {column: cell for column, cell in read.cells.items() if column in self.columns}  # of this dataset
        cells = {
            column: self._read_cell(str(cell), self.columns[column], f"{name} ({column})", label)
            for column, cell in known.items()
        }
        return Reading(cells, read.remark if cells else f"was ignored: {field.meaning} were not found in it")

    def _read_cell(self, text: str, column: Column, name: str, label: str) -> Cell:
        """Return a value typed as its column is; `name` is the field as the user typed it."""
        if column.kind is Kind.NUMERICAL:
            value = _read_bounded(text, column, name, label)
            if column.name in self._whole and not value.is_integer():
                raise UserError(f"{name} must be a whole number", f"{label} has {text[:_SHOWN_LETTERS]}")
            return value
        if column.kind is Kind.DATE and not is_month(text):
            raise UserError(f"{name} must be {MONTH}", f"{label} has {text[:_SHOWN_LETTERS]!r}")
        return text


_FLAGS = ("false", "true")
"""Texts of truth values, for columns from 0 to 1 alone: true is no number of units."""


def _as_text(value: object, name: str, label: str) -> str:
    """Return a value of a file or of a program as a user would type it; a missing value is an empty text."""
    shown = name.strip()[:_SHOWN_LETTERS]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        fact = f"{label} has {str(value)[:_SHOWN_LETTERS]!r}"
        raise UserError(f"{shown} must be one value", fact, "write a text or a number")
    if isinstance(value, int) and abs(value) >= _LARGEST_INTEGER:
        raise UserError(f"{shown} must be at most {MAX_LETTERS} letters", f"{label} has a longer number")
    text = repr(value) if isinstance(value, float) else str(value).strip()
    if len(text) > MAX_LETTERS:
        raise UserError(f"{shown} must be at most {MAX_LETTERS} letters", f"{label} has {len(text)}")
    hidden = next((letter for letter in text if not (letter.isprintable() or letter.isspace())), None)
    if hidden is not None:  # half a character, a control character, a mark that reverses the line
        raise UserError(f"{shown} must be text that can be printed", f"{label} has {hidden!a} in it", "take it out")
    return text


def _read_bounded(text: str, column: Column, name: str, label: str) -> float:
    unit = f" in {column.unit}" if column.unit else ""
    if text in _FLAGS and (column.low, column.high) == (0, 1):
        return float(_FLAGS.index(text))
    try:
        value = read_number(text, column.unit)
    except ValueError as error:
        fact = f"{label} has {text[:_SHOWN_LETTERS]!r}"
        raise UserError(f"{name} must be a number{unit}", fact, str(error)) from None
    low = -math.inf if column.low is None else column.low
    high = math.inf if column.high is None else column.high
    if not low <= value <= high:
        fact = f"{label} has {text[:_SHOWN_LETTERS]}"
        raise UserError(f"{name} must be between {low:g} and {high:g}{unit}", fact)
    return value
