"""One machine in a person's words, checked cell by cell and typed as its columns are declared."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.describing.fields import Cell, Field
from perfcast.describing.units import read_number
from perfcast.errors import UserError
from perfcast.schema import Column, Kind, as_declared

LINE = "line"
"""Index of machines: the line of a CSV file a machine begins at, else its number, from 1."""

MOST_LETTERS = 500
"""Longest value that is read."""

_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
_SHOWN = 60
_LONGEST = 10**MOST_LETTERS


class Vocabulary:
    """The words machines of a table may be described with: its columns, bare or after their group, and its fields."""

    def __init__(self, columns: Sequence[Column], fields: Iterable[Field] = ()) -> None:
        self.columns = {column.name: column for column in columns}
        self.fields = {name: field for field in fields for name in (field.name, *field.aliases)}
        self._grouped = {f"{column.group}.{column.name}": column.name for column in columns}

    def meaning(self, word: str, where: str) -> Column | Field:
        """Return what a word stands for. Raises: UserError with the nearest words when it stands for nothing."""
        name = word.strip().lower()
        name = self._grouped.get(name, name)
        if name in self.fields:
            return self.fields[name]
        if name in self.columns:
            return self.columns[name]
        known = [*self.fields, *self.columns]
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"the nearest are {', '.join(near)}" if near else f"such as {', '.join(known[:8])}"
        raise UserError("a machine must be described by known names", f"{where} has {word[:_SHOWN]!r}", hint)

    def cells(self, said: Mapping[str, object], where: str) -> dict[str, Cell]:
        """Return the cells of one machine by column; what is empty or None says nothing.

        `where` names the machine in errors. Raises: UserError, one line, for the first thing that cannot be used.
        """
        cells: dict[str, Cell] = {}
        by: dict[str, str] = {}
        for word, value in said.items():
            meant = self.meaning(word, where)
            words = _words(value, word, where)
            if not words:
                continue
            for name, cell in self._read(meant, words, word, where).items():
                if name in cells and cells[name] != cell:
                    fact = f"{where} has {by[name]} and {word}, which differ in {name}"
                    raise UserError("a machine must say a thing once", fact, "leave one of them out")
                cells[name], by[name] = cell, word
        return cells

    def _read(self, meant: Column | Field, words: str, word: str, where: str) -> dict[str, Cell]:
        if isinstance(meant, Column):
            return {meant.name: _cell(words, meant, where)}
        try:
            found = meant.read(words)
        except ValueError as error:
            requirement = f"{word} must be {meant.meaning}, such as {meant.example!r}"
            raise UserError(requirement, f"{where} has {words[:_SHOWN]!r}", str(error)) from None
        return {name: _cell(str(cell), self.columns[name], where, word) for name, cell in found.items()}

    def frame(self, entries: Sequence[Mapping[str, Cell]], lines: Sequence[int]) -> pd.DataFrame:
        """Return entries as a table: every column of the vocabulary with its declared type, index `LINE`."""
        index = pd.Index(lines, name=LINE)
        said = {name for entry in entries for name in entry}
        rows = {name: pd.Series([entry.get(name) for entry in entries], index, dtype=object) for name in said}
        frame = self._nothing.iloc[np.zeros(len(index), dtype=int)].set_axis(index)
        return frame.assign(**{name: as_declared(own, self.columns[name]) for name, own in rows.items()})

    @cached_property
    def _nothing(self) -> pd.DataFrame:
        """One machine of which nothing was said."""
        nothing = pd.Series([None], dtype=object)
        return pd.DataFrame({name: as_declared(nothing, column) for name, column in self.columns.items()})


def _words(value: object, word: str, where: str) -> str:
    """Return a value of a file or of a program as the text a person would have typed."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, (str, int, float)):
        raise UserError(
            f"{word[:_SHOWN]} must be one value", f"{where} has {str(value)[:_SHOWN]!r}", "write a text or a number"
        )
    if isinstance(value, int) and abs(value) >= _LONGEST:
        raise UserError(f"{word[:_SHOWN]} must be at most {MOST_LETTERS} letters", f"{where} has a longer number")
    words = repr(value) if isinstance(value, float) else str(value).strip()
    if len(words) > MOST_LETTERS:
        raise UserError(f"{word[:_SHOWN]} must be at most {MOST_LETTERS} letters", f"{where} has {len(words)}")
    hidden = next((letter for letter in words if not (letter.isprintable() or letter.isspace())), None)
    if hidden is not None:  # half a character, a control character, a mark that turns the line around
        fact = f"{where} has {hidden!a} in it"
        raise UserError(f"{word[:_SHOWN]} must be text that can be printed", fact, "take it out")
    return words


def _cell(words: str, column: Column, where: str, said: str | None = None) -> Cell:
    """Return a value typed as its column is; `said` is the word it was said by, where it is not the column's name."""
    name = column.name if said is None else f"{column.name} (of {said})"
    if column.kind is Kind.NUMERICAL:
        return _number(words, column, name, where)
    if column.kind is Kind.DATE:
        if not _MONTH.fullmatch(words):
            raise UserError(f"{name} must be a month such as 2026-03", f"{where} has {words[:_SHOWN]!r}")
        return words
    return words


def _number(words: str, column: Column, name: str, where: str) -> float:
    unit = f" in {column.unit}" if column.unit else ""
    try:
        value = read_number(words, column.unit)
    except ValueError as error:
        raise UserError(f"{name} must be a number{unit}", f"{where} has {words[:_SHOWN]!r}", str(error)) from None
    low = -math.inf if column.low is None else column.low
    high = math.inf if column.high is None else column.high
    if not low <= value <= high:
        allowed = f"between {low:g} and {high:g}{unit}"
        raise UserError(f"{name} must be {allowed}", f"{where} has {words[:_SHOWN]}")
    return value
