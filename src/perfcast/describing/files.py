"""Machines from a file: CSV, JSON or YAML, bounded in size, with nothing in it executed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from perfcast import bounds
from perfcast.errors import UserError
from perfcast.plain_yaml import read_yaml_text

MAX_BYTES = 64 * 1024 * 1024
"""Largest CSV file that is looked at."""
MAX_NESTED_BYTES = 10 * 1024 * 1024
"""Largest JSON file that is looked at: its reader holds it in memory several times. YAML: `bounds.YAML`."""
MOST_MACHINES = 200_000
"""Most machines of a file: each takes about 2 KB before it is forecast."""
_DEEPEST = 3
_LIST = "machines"

Entry = tuple[int, str, dict[str, object]]
"""Line or number of a machine, how errors call it, and what was said of it."""


def read_entries(path: Path) -> list[Entry]:
    """Read the machines of a file; its ending says what it is: .csv, .csv.gz, .json, .yaml or .yml.

    A JSON or YAML file holds a machine, a list of them, or such a list under `machines`; nested names are joined with
    dots. Raises: UserError, one line, for whatever is not such a file.
    """
    path = Path(path)
    readers = {".csv": _csv, ".csv.gz": _csv, ".json": _json, ".yaml": _yaml, ".yml": _yaml}
    ending = next((one for one in readers if path.name.lower().endswith(one)), None)
    if ending is None:
        raise UserError(f"a file of machines must end in {', '.join(readers)}", f"it is {path.name!r}")
    if not path.is_file():
        raise UserError("the file of machines must exist", f"there is no file {path}")
    content = _content(path, MAX_BYTES if readers[ending] is _csv else MAX_NESTED_BYTES)
    entries = list(islice(readers[ending](path, _text(path, content)), MOST_MACHINES + 1))
    if len(entries) > MOST_MACHINES:
        raise UserError(f"{path} must describe at most {MOST_MACHINES} machines", "it describes more", "split it")
    if not entries:
        raise UserError(f"{path} must describe a machine at least", "it describes none")
    return entries


def entries_of(value: object, source: str) -> list[Entry]:
    """Return the machines of a decoded JSON or YAML value; `source` names it in errors."""
    if isinstance(value, Mapping) and set(value) == {_LIST}:
        value = value[_LIST]
    machines = value if isinstance(value, list) else [value]
    if len(machines) > MOST_MACHINES:
        raise UserError(f"{source} must describe at most {MOST_MACHINES} machines", f"it describes {len(machines)}")
    entries = []
    for number, machine in enumerate(machines, start=1):
        if not isinstance(machine, Mapping):
            shown = str(machine)[:40]
            raise UserError(f"{source} must hold names with values", f"machine {number} is {shown!r}", "see --help")
        entries.append((number, f"machine {number}", dict(_flat(machine, source))))
    return entries


def _flat(nested: Mapping[Any, object], source: str, before: str = "", depth: int = 1) -> Iterator[tuple[str, object]]:
    if depth > _DEEPEST:
        raise UserError(f"{source} must be nested {_DEEPEST} deep at most", f"{before!r} is deeper")
    for key, value in nested.items():
        if not isinstance(key, str):
            raise UserError(f"names in {source} must be text", f"found {str(key)[:40]!r}", "put it in quotes")
        if isinstance(value, Mapping):
            yield from _flat(value, source, f"{before}{key}.", depth + 1)
        else:
            yield f"{before}{key}", value


def _content(path: Path, most: int) -> bytes:
    """Return the bytes of a file, unpacked. Raises: UserError when they are more than `most`."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} must be readable", str(error)) from None
    if len(content) > most:
        raise UserError(f"{path} must be smaller than {most >> 20} MiB", "it is larger", "split it")
    return content


def _text(path: Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path} must be UTF-8 text", f"line {line} is not", "save it as UTF-8") from None
    if not text.strip():
        raise UserError(f"{path} must describe a machine at least", "it is empty")
    return text


def _csv(path: Path, text: str) -> Iterator[Entry]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = _header(path, next(reader, []))
        begin = reader.line_num + 1
        for fields in reader:
            line, begin = begin, reader.line_num + 1
            if not any(field.strip() for field in fields):
                continue
            if len(fields) != len(header):
                requirement = f"every line must have the header's {len(header)} fields"
                raise UserError(requirement, f"line {line} has {len(fields)}")
            yield line, f"line {line}", dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise UserError(f"{path} must be CSV", f"line {reader.line_num}: {error}") from None


def _header(path: Path, fields: list[str]) -> list[str]:
    if len(fields) > bounds.COLUMNS:
        raise UserError(f"{path} must have at most {bounds.COLUMNS} columns", f"it has {len(fields)}")
    header: list[str] = []
    for position, field in enumerate(map(str.strip, fields), start=1):
        if not field:
            raise UserError(f"every column of {path} must have a name", f"column {position} has none")
        if field in header:
            raise UserError(f"{path} must have the column {field!r} once", f"column {position} repeats it")
        header.append(field)
    return header


def _json(path: Path, text: str) -> Iterator[Entry]:
    yield from entries_of(read_json_text(text, str(path)), str(path))


def read_json_text(text: str | bytes, source: str) -> object:
    """Decode JSON without repeated names and without NaN. Raises: UserError for whatever is not JSON."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise UserError(f"{source} must say a thing once", "a name is repeated in it")
        return found

    def refuse(constant: str) -> None:
        raise UserError(f"numbers in {source} must be finite", f"found {constant}")

    try:
        value: object = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except RecursionError:
        raise UserError(f"{source} must be nested {_DEEPEST} deep at most", "it is deeper") from None
    except ValueError as error:
        raise UserError(f"{source} must be JSON", str(error)) from None
    return value


def _yaml(path: Path, text: str) -> Iterator[Entry]:
    yield from entries_of(read_yaml_text(text, str(path)), str(path))
