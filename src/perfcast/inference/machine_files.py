"""Read machines from CSV, JSON or YAML files, frames and dictionaries; sizes are bounded and nothing is executed."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json_text

MAX_BYTES = 64 * 1024 * 1024
"""Largest CSV file that is read."""
MAX_NESTED_BYTES = 10 * 1024 * 1024
"""Largest JSON file that is read: its reader holds it in memory several times. YAML: `bounds.YAML`."""
MAX_MACHINES = 200_000
"""Most machines of a file: each takes about 2 KB before its prediction."""
_LIST = "machines"
ENDINGS = (".csv", ".json", ".yaml", ".yml")
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
"""Endings of files that a spreadsheet can save as CSV."""
"""Endings of files of machines."""
NAME, PRICE, WATTS, RACKS, DISK, NETWORK = "name", "price", "watts", "racks", "disk", "network"
EXTRAS = (NAME, PRICE, WATTS, RACKS, DISK, NETWORK)
"""Fields of an offer beside those of its machine: rankings and sizings read them, other answers carry them."""
COUNT, UTILIZATION = "count", "utilization"
OF_FLEETS = dict.fromkeys((COUNT, "quantity", "qty"), COUNT) | {UTILIZATION: UTILIZATION}
"""Names of the fields of a fleet's row beside those of its machine, with the field."""

Machines = Mapping[str, Any] | Sequence[Mapping[str, Any]] | pd.DataFrame | Path | str
"""One machine or several: names with values, a frame with one machine per row, or the path of a file."""


class MachineEntry(NamedTuple):
    """One machine as the user wrote it: its line or number, its label in errors, and values by typed field name.

    `carried` has what describes no machine: `EXTRAS`, and the unknown columns of a table.
    """

    line: int
    label: str
    values: dict[str, object]
    carried: Mapping[str, object] = MappingProxyType({})

    @property
    def plain_carried(self) -> dict[str, str | float | None]:
        """The carried values as JSON has them."""
        return {name: _as_plain(value) for name, value in self.carried.items()}

    def carry(self, names: Mapping[str, str]) -> MachineEntry:
        """Return the entry with some of its values carried, under new names."""
        values = {name: value for name, value in self.values.items() if name not in names}
        carried = {new: self.values[name] for name, new in names.items()}
        return self._replace(values=values, carried={**self.carried, **carried})


def make_entry(line: int, place: str, values: Mapping[str, object]) -> MachineEntry:
    """Return an entry that carries its `EXTRAS`; the label is the place with the name of the offer."""
    extras: dict[str, str] = {}
    for name in values:
        extra = name.strip().lower()
        if extra in EXTRAS:  # a second one is refused where it is read
            extras[name] = f" {extra}" if extra in extras.values() else extra
    entry = MachineEntry(line, place, dict(values)).carry(extras)
    offer = entry.carried.get(NAME)
    shown = tidy_text(offer)[:_SHOWN_LETTERS] if isinstance(offer, str) else ""
    return entry._replace(label=f"{place} ({shown})") if shown else entry


def _as_plain(value: object) -> str | float | None:
    missing = value is None or (isinstance(value, float) and not math.isfinite(value))
    return None if missing else value if isinstance(value, (str, int, float)) else str(value)


def tidy_text(text: str) -> str:
    """Return a text on one line, without letters that would act on the terminal that shows it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def is_table(machines: Machines) -> bool:
    """Return whether machines are the rows of one table: a frame or a CSV file."""
    is_file = isinstance(machines, (str, Path))
    return str(machines).lower().endswith(".csv") if is_file else isinstance(machines, pd.DataFrame)


def read_machines(machines: Machines) -> list[MachineEntry]:
    """Return the entries of machines in any of the forms of `Machines`."""
    if isinstance(machines, (str, Path)):
        return read_entries(Path(machines))
    if isinstance(machines, pd.DataFrame):
        return read_frame(machines)
    return read_tree(machines if isinstance(machines, Mapping) else list(machines), "a machine")


def add_fields(entries: Iterable[MachineEntry], fields: Mapping[str, object]) -> list[MachineEntry]:
    """Return the machines with further fields. Raises: UserError when a machine gives one of the fields, too."""
    added = []
    for entry in entries:
        twice = [name for name in fields if {**entry.values, **entry.carried}.get(name) not in (None, "")]
        if twice:
            fact = f"{entry.label} and a flag both give {twice[0]}"
            raise UserError("a machine must give every field once", fact)
        flags = make_entry(entry.line, entry.label, fields)
        added.append(
            entry._replace(values={**entry.values, **flags.values}, carried={**entry.carried, **flags.carried})
        )
    return added


def read_assignments(texts: Iterable[str], fields: Mapping[str, object]) -> dict[str, object]:
    """Return fields and those of NAME=VALUE texts. Raises: UserError for another text, and a name given twice."""
    values = dict(fields)
    for text in texts:
        name, equals, value = map(str.strip, text.partition("="))
        if not equals or not name or not value:
            raise UserError("--set must be NAME=VALUE, such as tdp=400", f"it is {text!r}")
        if name in values:
            raise UserError("a machine must give every field once", f"{name} is given twice")
        values[name] = value
    return values


_SHOWN_LETTERS = 60
"""Letters of a machine's text that messages show."""


def read_short_machine(text: str, named: str, example: str) -> MachineEntry:
    """Return the machine of a short text: its name, or its name and fields, `NAME; FIELD=VALUE; FIELD=VALUE`.

    Args: `named` is the field of the name, `example` a remedy for another text. Raises: UserError for another text.
    """
    name, *others = (piece.strip() for piece in text.split(";"))
    if not name or not all("=" in field for field in others):
        requirement = f"a machine must be a file or a {named}, then NAME=VALUE"
        raise UserError(requirement, f"it is {text[:60]!r}", f"such as {example}")
    return make_entry(1, name[:_SHOWN_LETTERS], read_assignments(filter(None, others), {named: name}))


def read_frame(frame: pd.DataFrame) -> list[MachineEntry]:
    """Return the entries of a frame, one per row; missing cells are left out. Rows are numbered from 1."""
    cells = frame.astype(object).where(frame.notna(), None)
    return [
        make_entry(number, f"row {number}", {str(name): value for name, value in row.items()})
        for number, row in enumerate(cells.to_dict("records"), start=1)
    ]


def read_entries(path: Path) -> list[MachineEntry]:
    """Read the machines of a file; its ending names the format: .csv, .json, .yaml or .yml.

    A JSON or YAML file holds a machine, a list of machines, or such a list under `machines`.
    Raises: UserError, one line, for any other file.
    """
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        remedy = "save it as CSV" if path.suffix.lower() in SPREADSHEETS else ""
        raise UserError(f"a file of machines must end in {', '.join(ENDINGS)}", f"it is {path.name!r}", remedy)
    if not path.is_file():
        raise UserError("the file of machines must exist", f"there is no file {path}")
    is_table = path.suffix.lower() == ".csv"
    text = _read_text(path, MAX_BYTES if is_table else MAX_NESTED_BYTES)
    entries = list(islice(read_table(path, text), MAX_MACHINES + 1)) if is_table else _read_nested(path, text)
    if len(entries) > MAX_MACHINES:
        raise UserError(f"{path} must describe at most {MAX_MACHINES} machines", "it describes more", "split it")
    if not entries:
        raise UserError(f"{path} must describe at least one machine", "it describes none")
    return entries


def read_tree(value: object, source: str) -> list[MachineEntry]:
    """Return the machines of a decoded JSON or YAML value; `source` names it in errors."""
    if isinstance(value, Mapping) and set(value) == {_LIST}:
        value = value[_LIST]
    machines = value if isinstance(value, list) else [value]
    if len(machines) > MAX_MACHINES:
        raise UserError(f"{source} must describe at most {MAX_MACHINES} machines", f"it describes {len(machines)}")
    entries = []
    for number, machine in enumerate(machines, start=1):
        if not isinstance(machine, Mapping):
            shown = str(machine)[:40]
            raise UserError(f"{source} must hold names with values", f"machine {number} is {shown!r}", "see --help")
        if wrong := next((key for key in machine if not isinstance(key, str)), None):
            raise UserError(f"names in {source} must be text", f"found {str(wrong)[:40]!r}", "put it in quotes")
        entries.append(make_entry(number, f"machine {number}", machine))
    return entries


def _read_text(path: Path, limit: int) -> str:
    """Return the text of a file. Raises: UserError when it has more than `limit` bytes, or is no UTF-8."""
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise UserError(f"{path} must be readable", str(error)) from None
    if len(content) > limit:
        raise UserError(f"{path} must be smaller than {limit >> 20} MiB", "it is larger", "split it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path} must be UTF-8 text", f"line {line} is not", "save it as UTF-8") from None
    if not text.strip():
        raise UserError(f"{path} must describe at least one machine", "it is empty")
    return text


def read_table(path: Path | str, text: str) -> Iterator[MachineEntry]:
    """Yield the machines of a table whose cells are separated by commas, tabs or semicolons, as its header tells.

    Args: `path` names the table in errors. Raises: UserError, one line, for any other text.
    """
    delimiter = max(",\t;", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = _read_header(path, next(reader, []))
        begin = reader.line_num + 1
        for fields in reader:
            line, begin = begin, reader.line_num + 1
            if not any(field.strip() for field in fields):
                continue
            if len(fields) != len(header):
                requirement = f"every line must have the header's {len(header)} fields"
                raise UserError(requirement, f"line {line} has {len(fields)}")
            yield make_entry(line, f"line {line}", dict(zip(header, fields, strict=True)))
    except csv.Error as error:
        raise UserError(f"{path} must be CSV", f"line {reader.line_num}: {error}") from None


def _read_header(path: Path | str, fields: list[str]) -> list[str]:
    if len(fields) > size_limits.COLUMNS:
        raise UserError(f"{path} must have at most {size_limits.COLUMNS} columns", f"it has {len(fields)}")
    header: list[str] = []
    for position, field in enumerate(map(str.strip, fields), start=1):
        if not field:
            raise UserError(f"every column of {path} must have a name", f"column {position} has none")
        if field in header:
            raise UserError(f"{path} must have the column {field!r} once", f"column {position} repeats it")
        header.append(field)
    return header


def _read_nested(path: Path, text: str) -> list[MachineEntry]:
    if path.suffix.lower() == ".json":
        return read_tree(read_json_text(text, str(path)), str(path))
    from perfcast.utils.safe_yaml import read_yaml_text  # slow to import

    return read_tree(read_yaml_text(text, str(path)), str(path))
