"""Read a file of machines that nobody has measured: standard columns as CSV, every cell checked."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from perfcast.errors import UserError
from perfcast.schema import Column, Kind, as_declared

MAX_BYTES = 64 * 1024 * 1024
"""Largest file that is looked at."""

LINE = "line"
"""Index of the answer: the line of the file a machine begins at; the header is line 1."""

_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
_Cell = float | str | pd.Timestamp | None


def read_machines(path: Path, columns: Sequence[Column], aliases: Mapping[str, str]) -> pd.DataFrame:
    """Read machines described by any of the given columns; absent columns and empty cells are missing values.

    Shapes: one row per machine, every given column with its declared type, index `LINE`. `aliases` maps further names
    a header may have to column names. Units: those declared; dates are written YYYY-MM.

    Raises: UserError, one line naming row and column, for whatever is not such a file.
    """
    declared = {column.name: column for column in columns}
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        header = _header(path, next(reader, []), declared, aliases)
        rows, lines, begin = [], [], reader.line_num + 1
        for fields in reader:
            line, begin = begin, reader.line_num + 1
            if any(field.strip() for field in fields):
                rows.append(_row(fields, header, line))
                lines.append(line)
    except csv.Error as error:
        raise UserError(f"{path} must be CSV", f"line {reader.line_num}: {error}") from None
    if not rows:
        raise UserError(f"{path} must have a line per machine", "it has a header only")
    frame = pd.DataFrame(rows, index=pd.Index(lines, name=LINE), columns=[column.name for column in header])
    full = frame.reindex(columns=list(declared))
    return pd.DataFrame({name: as_declared(full[name], column) for name, column in declared.items()})


def _text(path: Path) -> str:
    if not path.is_file():
        raise UserError("the file of machines must exist", f"there is no file {path}")
    if path.stat().st_size > MAX_BYTES:
        raise UserError(f"{path} must be smaller than {MAX_BYTES >> 20} MiB", f"it has {path.stat().st_size >> 20} MiB")
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path} must be UTF-8 text", f"line {line} is not", "save it as UTF-8") from None
    if not text.strip():
        raise UserError(f"{path} must have a header line and a line per machine", "it is empty")
    return text


def _header(
    path: Path, fields: Sequence[str], declared: Mapping[str, Column], aliases: Mapping[str, str]
) -> list[Column]:
    """Return the column of each field of the first line."""
    header: list[Column] = []
    for position, field in enumerate(fields, start=1):
        name = aliases.get(field.strip(), field.strip())
        if name not in declared:
            near = get_close_matches(name, [*declared, *aliases], n=3, cutoff=0.5)
            hint = f"the nearest are {', '.join(near)}" if near else f"columns are such as {', '.join([*declared][:8])}"
            found = f"{field[:80]!r} (column {position}) is not" if field.strip() else f"column {position} has no name"
            raise UserError(f"the columns of {path} must be features or keys of the data set", found, hint)
        if declared[name] in header:
            raise UserError(f"{path} must have the column {name!r} once", f"column {position} repeats it")
        header.append(declared[name])
    return header


def _row(fields: Sequence[str], header: Sequence[Column], line: int) -> list[_Cell]:
    if len(fields) != len(header):
        raise UserError(f"every line must have the header's {len(header)} fields", f"line {line} has {len(fields)}")
    return [_cell(field.strip(), column, line) for field, column in zip(fields, header, strict=True)]


def _cell(text: str, column: Column, line: int) -> _Cell:
    if not text:
        return None
    if column.kind is Kind.NUMERICAL:
        return _number(text, column, line)
    if column.kind is Kind.DATE:
        if not _MONTH.fullmatch(text):
            raise UserError(f"{column.name} must be a month such as 2026-03", f"line {line} has {text[:80]!r}")
        return pd.Timestamp(f"{text}-01")
    return text


def _number(text: str, column: Column, line: int) -> float:
    unit = f" in {column.unit}" if column.unit else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{column.name} must be a number{unit}", f"line {line} has {text[:80]!r}")
    low = -math.inf if column.low is None else column.low
    high = math.inf if column.high is None else column.high
    if not low <= value <= high:
        raise UserError(f"{column.name} must be between {low:g} and {high:g}{unit}", f"line {line} has {text[:80]}")
    return value
