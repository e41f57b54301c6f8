"""Readings of hardware values: sources, reasons for missing ones, and bounded access to files and tools."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


Run = Callable[[Sequence[str]], str]
"""Runs a command and returns its output. Raises: OSError or subprocess.SubprocessError when it fails."""

FAILURES = (OSError, subprocess.SubprocessError)
"""Exceptions of a command that is missing, fails or does not end."""

MAX_CHARACTERS = 4 * 1024 * 1024
"""The output of a machine with thousands of DIMMs and CPUs is shorter."""

_SECONDS = 20.0
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


def run_command(command: Sequence[str]) -> str:
    """Return the output of a command in English, cut after MAX_CHARACTERS.

    Raises: FileNotFoundError when the command does not exist; CalledProcessError when it fails; TimeoutExpired.
    """
    # ordinary users do not have the folder of dmidecode in PATH
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS])
    environment = {**os.environ, "LC_ALL": "C", "PATH": path}
    with subprocess.Popen(
        list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        expired = threading.Event()

        def stop() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(_SECONDS, stop)
        timer.start()
        try:
            output = process.stdout.read(MAX_CHARACTERS) if process.stdout else b""
            cut = len(output) == MAX_CHARACTERS
            if cut:
                process.kill()
            status = process.wait()
        finally:
            timer.cancel()
    if expired.is_set():
        raise subprocess.TimeoutExpired(list(command), _SECONDS)
    if status and not cut:
        raise subprocess.CalledProcessError(status, list(command))
    return output.decode("utf-8", errors="replace")


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


Fields = tuple[tuple[str, str], ...]
"""Fields and values in the printed order; a field is repeated for every kind of core."""

_UNIT_KIB = {"B": 1 / 1024, "KiB": 1.0, "K": 1.0, "MiB": 1024.0, "M": 1024.0, "GiB": 1024.0**2, "G": 1024.0**2}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([KMG]i?B?|B)(?:\s*\((\d{1,6}) instances?\))?", re.ASCII)
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_MAX_DEPTH = 8


@dataclass(frozen=True)
class CacheSize:
    """Size of a cache in the output of lscpu.

    Units: KiB. `of_all` is true for the sum over `instances` (util-linux 2.34 and newer, which writes KiB and counts
    instances from 2.37 on), false for one instance (older, which writes K).
    """

    kib: float
    instances: int | None
    of_all: bool


def read_fields(run: Run) -> Fields:
    """Return the fields of lscpu; an empty tuple when it prints none.

    Raises: OSError or subprocess.SubprocessError when lscpu fails.
    """
    try:
        fields = parse_json_fields(run(["lscpu", "-J"]))
    except subprocess.CalledProcessError:
        fields = ()
    # util-linux before 2.30 does not know -J.
    return fields or parse_text_fields(run(["lscpu"]))


def parse_json_fields(text: str) -> Fields:
    """Return the fields of `lscpu -J`, flat; an empty tuple for any other text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    fields: list[tuple[str, str]] = []

    def walk(entries: Any, depth: int) -> None:
        for entry in entries if isinstance(entries, list) and depth < _MAX_DEPTH else []:
            if isinstance(entry, dict) and isinstance(entry.get("field"), str):
                fields.append((entry["field"].rstrip(":"), str(entry.get("data") or "")))
                walk(entry.get("children"), depth + 1)

    walk(document.get("lscpu") if isinstance(document, dict) else None, 0)
    return tuple(fields)


def parse_text_fields(text: str) -> Fields:
    """Return the fields of plain `lscpu`: lines of a name, a colon and a value."""
    parts = (line.partition(":") for line in text.splitlines())
    return tuple((name.strip(), value.strip()) for name, colon, value in parts if colon and name.strip())


def first_value(fields: Fields, name: str) -> str:
    """Return the first value of a field that is neither empty nor '-'; "" if there is none."""
    return next((value.strip() for field, value in fields if field == name and value.strip() not in ("", "-")), "")


def parse_cache_size(text: str) -> CacheSize | None:
    """Return the size in '4 MiB (2 instances)', '1.5 MiB' or '32K'."""
    match = _SIZE.match(text)
    if match is None or match[2] not in _UNIT_KIB:
        return None
    of_all = match[2] == "B" or match[2].endswith("iB")
    return CacheSize(float(match[1]) * _UNIT_KIB[match[2]], int(match[3]) if match[3] else None, of_all)


def parse_count(text: str) -> int | None:
    """Return a whole number from decimal digits; None for any other text."""
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


def count_cpus(text: str) -> int:
    """Return the number of CPUs in a list such as '0-63,128'."""
    matches = (_RANGE.fullmatch(part.strip()) for part in text.split(","))
    return sum(max(0, int(match[2] or match[1]) - int(match[1]) + 1) for match in matches if match)
