"""Read the dump line by line: one line is one row, so that a broken row never costs its neighbours."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from operator import itemgetter
from pathlib import Path
from typing import IO

import pandas as pd

from perfcast import bounds
from perfcast.datasets._strict_csv import CsvRows, Rejection
from perfcast.errors import UserError
from perfcast.unpacking import header_of, kind_by_content, unpacked

_UNUSED_LAST = ("Disclosure URL", "Disclosures")
"""Names at the header's end that have no field in the rows of SPEC's dumps."""

_REMEDY = "ingest the source again"


def read_dump(source: str, path: Path, columns: Sequence[str]) -> CsvRows:
    """Read the named columns of the dump as text, and where each row stands; blank lines are no rows.

    A row that is not UTF-8, not CSV, too long, of another number of fields than the header, or the header again is
    quarantined.

    Raises: UserError when the file is empty, cut off, not a table, or lacks a wanted column or has it twice.
    """
    if not path.is_file():
        raise UserError(f"source {source!r} must have the file {path.name}", f"{path} is not there", _REMEDY)
    with unpacked(path, kind_by_content(path), remedy=_REMEDY) as file:
        header = _header(path, file, columns)
        kept, rejections = _rows(source, path.name, file, header, columns)
    frame = pd.DataFrame([row for _, row in kept], columns=list(columns), dtype="str")
    frame["line"] = pd.Series([line for line, _ in kept], dtype="int64")
    return CsvRows(frame, tuple(rejections), len(kept) + len(rejections))


def _header(path: Path, file: IO[bytes], columns: Sequence[str]) -> list[str]:
    line = file.readline(bounds.LINE).decode("utf-8-sig", errors="replace")
    names = [" ".join(name.split()) for name in header_of(line, str(path), remedy=_REMEDY)]
    for column in columns:
        if names.count(column) != 1:
            near = get_close_matches(column, [name for name in names if name not in columns], n=1, cutoff=0.4)
            shown = f", the nearest unknown one is {near[0]!r}" if near else ""
            raise UserError(
                f"{path} must have the column {column!r} once",
                f"found it {names.count(column)} times among {len(names)}{shown}",
                _REMEDY,
            )
    return names


def _rows(
    source: str, name: str, file: IO[bytes], header: list[str], columns: Sequence[str]
) -> tuple[list[tuple[int, tuple[str, ...]]], list[Rejection]]:
    pick = itemgetter(*(header.index(column) for column in columns))
    widths = {len(header), len(header) - sum(name in _UNUSED_LAST for name in header[-len(_UNUSED_LAST) :])}
    kept: list[tuple[int, tuple[str, ...]]] = []
    rejections: list[Rejection] = []
    for number, line in _lines(file):
        fields, reason, detail = _fields(line)
        if not reason and fields[0] == header[0] and [" ".join(field.split()) for field in fields] == header:
            reason, detail = "repeated_header", ""
        elif not reason and len(fields) not in widths:
            reason, detail = "wrong_field_count", f"{len(fields)} fields, the header has {len(header)}"
        if reason:
            rejections.append(Rejection(source, name, number, reason, detail))
        else:
            kept.append((number, pick(fields)))
    return kept, rejections


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Give each line that is not blank with its number, the header being line 1; a longer one is cut."""
    number = 1
    while line := file.readline(bounds.LINE):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(bounds.LINE)
        if line.strip():
            yield number, line


def _fields(line: bytes) -> tuple[list[str], str, str]:
    """Return the fields of a line, or no fields and the reason and detail why it has none."""
    if len(line) == bounds.LINE:
        return [], "line_too_long", f"longer than {bounds.LINE} bytes"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return [], "not_utf8", f"byte {line[error.start]:#04x} at {error.start}"
    try:
        return next(csv.reader([text.rstrip("\r\n")], strict=True)), "", ""
    except csv.Error as error:
        return [], "not_csv", str(error)
