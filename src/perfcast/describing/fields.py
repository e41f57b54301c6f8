"""What a person may say of a machine beside the columns of its table: one field stands for one or more columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Cell = str | float
"""A value of a description, typed as its column is; dates are text, YYYY-MM."""


@dataclass(frozen=True)
class Field:
    """One thing to say in one's own words.

    `read` turns the words into cells of `columns` and raises ValueError, with the reason, where it cannot.
    """

    name: str
    meaning: str
    example: str
    columns: tuple[str, ...]
    read: Callable[[str], Mapping[str, Cell]]
    aliases: tuple[str, ...] = ()


def renamed(name: str, column: str, meaning: str, example: str, *aliases: str) -> Field:
    """Return a field that is another name of one column; its words are read as the column's are."""
    return Field(name, meaning, example, (column,), lambda words: {column: words}, aliases)
