"""Readings of hardware values: sources, reasons for missing ones, and access to the machine."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfcast.microbench.machine import FAILURES, MAX_CHARACTERS, Run
from perfcast.schema.table import Column, Kind

_MAX_SHOWN = 120


@dataclass(frozen=True)
class Reading:
    """One value read from this machine.

    Units: `value` is in the unit of the standard column, text for a categorical one. `text` is the
    original text, `where` its source.
    """

    column: str
    value: float | str
    text: str
    where: str


@dataclass(frozen=True)
class HardwareInfo:
    """Readings of this machine.

    `not_read` maps a column to the reason and what to do; no column is both read and not read. `notes`
    describe limits of the readings.
    """

    readings: tuple[Reading, ...]
    not_read: dict[str, str]
    notes: tuple[str, ...]

    def without(self, columns: Container[str]) -> HardwareInfo:
        """Return the readings of the other columns."""
        readings = tuple(reading for reading in self.readings if reading.column not in columns)
        not_read = {column: reason for column, reason in self.not_read.items() if column not in columns}
        return HardwareInfo(readings, not_read, self.notes)

    def as_text(self) -> str:
        """Return the readings with their origin, the columns that could not be read with the reason, and the notes."""
        lines = ["read of this machine:"]
        for reading in self.readings:
            value = f"{reading.value:g}" if isinstance(reading.value, float) else reading.value
            lines.append(f"  {reading.column} {value} ({reading.where}: {reading.text})")
        reasons: dict[str, list[str]] = {}
        for column, reason in self.not_read.items():
            reasons.setdefault(reason, []).append(column)
        lines.append("could not be read:")
        lines += [f"  {', '.join(columns)}: {reason}" for reason, columns in reasons.items()]
        return "\n".join([*lines, *self.notes])


class ReadingCollector:
    """Collector of readings of declared columns: the first value of a column within its bounds counts."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._declared = {column.name: column for column in columns}
        self._read: dict[str, Reading] = {}
        self._missed: dict[str, str] = {}
        self._notes: dict[str, None] = {}

    def add(self, column: str, value: float | str | bool | None, text: str, where: str) -> bool:
        """Add a value unless it is empty or the column has one; return whether the column has a value now."""
        if value is None or value == "" or column in self._read:
            return column in self._read
        declared, shown = self._declared[column], _shorten(text)
        if declared.kind is not Kind.NUMERICAL:
            self._read[column] = Reading(column, str(value), shown, where)
            return True
        number = float(value)
        low = float("-inf") if declared.low is None else declared.low
        high = float("inf") if declared.high is None else declared.high
        if not low <= number <= high:
            unit = f" {declared.unit}" if declared.unit else ""
            self.add_missing(
                [column], f"{where} reads {shown!r}, which is outside {low:g} to {high:g}{unit}: give the value"
            )
            return False
        self._read[column] = Reading(column, number, shown, where)
        return True

    def add_missing(self, columns: Iterable[str], reason: str) -> None:
        """Add the reason for missing columns; the first reason of a column counts unless it has a value."""
        for column in columns:
            self._missed.setdefault(self._declared[column].name, reason)

    def add_note(self, text: str) -> None:
        """Add a remark once."""
        self._notes[text] = None

    def get_number(self, column: str) -> float | None:
        """Return the number read for a column."""
        value = self._read[column].value if column in self._read else None
        return value if isinstance(value, float) else None

    def get_text(self, column: str) -> str | None:
        """Return the text read for a column."""
        value = self._read[column].value if column in self._read else None
        return value if isinstance(value, str) else None

    def to_hardware_info(self) -> HardwareInfo:
        """Return all readings in the declared order of the columns."""
        order = [name for name in self._declared if name in self._read or name in self._missed]
        return HardwareInfo(
            tuple(self._read[name] for name in order if name in self._read),
            {name: self._missed[name] for name in order if name not in self._read},
            tuple(self._notes),
        )


def _shorten(text: str) -> str:
    """Return the text on one line, printable and short."""
    clean = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return clean if len(clean) <= _MAX_SHOWN else f"{clean[: _MAX_SHOWN - 1]}…"


@dataclass(frozen=True)
class Host:
    """Access to a machine: its commands, and the root of its file system."""

    run: Run
    root: Path

    def run_or_empty(self, *command: str) -> str:
        """Return the stripped output of a command; "" when it fails."""
        try:
            return self.run(command).strip()
        except FAILURES:
            return ""

    def read_text(self, path: str) -> str:
        """Return the stripped text of a file; "" when it cannot be read."""
        try:
            with (self.root / path.lstrip("/")).open("rb") as file:
                return file.read(MAX_CHARACTERS).decode("utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return ""

    def list_names(self, path: str) -> list[str]:
        """Return the sorted names in a folder; an empty list when it cannot be read."""
        try:
            return sorted(entry.name for entry in (self.root / path.lstrip("/")).iterdir())
        except (OSError, ValueError):
            return []

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        try:
            return (self.root / path.lstrip("/")).exists()
        except (OSError, ValueError):
            return False
