"""What was read of a machine, where it was read, and why the rest was not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfcast.schema import Column, Kind

_SHOWN = 120


@dataclass(frozen=True)
class Reading:
    """One thing that was read of this machine.

    Units: `value` is in the unit of the standard column, text for a categorical one. `text` is what the machine said.
    """

    column: str
    value: float | str
    text: str
    where: str


@dataclass(frozen=True)
class ThisMachine:
    """The machine at hand as far as it could be read.

    `not_read` maps a column to the reason and what to do; no column is both read and not read. `notes` say what
    limits the worth of what was read.
    """

    readings: tuple[Reading, ...]
    not_read: dict[str, str]
    notes: tuple[str, ...]


class Gathering:
    """Collects readings of declared columns: the first good value of a column counts, and none out of bounds."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._declared = {column.name: column for column in columns}
        self._read: dict[str, Reading] = {}
        self._missed: dict[str, str] = {}
        self._notes: dict[str, None] = {}

    def put(self, column: str, value: float | str | bool | None, text: str, where: str) -> bool:
        """Keep a value unless there is none, or the column has one already; tell whether the column is now read."""
        if value is None or value == "" or column in self._read:
            return column in self._read
        declared, shown = self._declared[column], _shown(text)
        if declared.kind is not Kind.NUMERICAL:
            self._read[column] = Reading(column, str(value), shown, where)
            return True
        number = float(value)
        low = float("-inf") if declared.low is None else declared.low
        high = float("inf") if declared.high is None else declared.high
        if not low <= number <= high:
            unit = f" {declared.unit}" if declared.unit else ""
            self.miss([column], f"{where} says {shown!r}, which cannot be: {low:g} to {high:g}{unit} can; give it")
            return False
        self._read[column] = Reading(column, number, shown, where)
        return True

    def miss(self, columns: Iterable[str], why: str) -> None:
        """Keep why columns are not read; the first reason of a column counts, and none where it is read."""
        for column in columns:
            self._missed.setdefault(self._declared[column].name, why)

    def note(self, text: str) -> None:
        """Keep a remark, once."""
        self._notes[text] = None

    def number(self, column: str) -> float | None:
        """Return the number read for a column."""
        value = self._read[column].value if column in self._read else None
        return value if isinstance(value, float) else None

    def text(self, column: str) -> str | None:
        """Return the text read for a column."""
        value = self._read[column].value if column in self._read else None
        return value if isinstance(value, str) else None

    def result(self) -> ThisMachine:
        """Return everything, in the declared order of the columns."""
        order = [name for name in self._declared if name in self._read or name in self._missed]
        return ThisMachine(
            tuple(self._read[name] for name in order if name in self._read),
            {name: self._missed[name] for name in order if name not in self._read},
            tuple(self._notes),
        )


def _shown(text: str) -> str:
    """Return the text on one line, printable and short."""
    clean = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return clean if len(clean) <= _SHOWN else f"{clean[: _SHOWN - 1]}…"
