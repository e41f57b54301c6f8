"""Read a small CSV file row by row: every row is either understood or quarantined with its line number."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TextIO

import pandas as pd

from perfcast.datasets.base import REJECTED_COLUMNS
from perfcast.errors import UserError

MAX_HEADER = 1_000_000
"""Characters of the first line beyond which a file is not looked at."""

_UNDECODABLE = "�"
_REMEDY = "ingest the source again, or delete its folder under results/raw first"


@dataclass(frozen=True)
class Rejection:
    """One quarantined row, in the order of `REJECTED_COLUMNS`."""

    source: str
    file: str
    line: int
    reason: str
    detail: str


def rejected_frame(rejections: Iterable[Rejection]) -> pd.DataFrame:
    """Return quarantined rows as the frame of rejected.csv, ordered by file and line."""
    ordered = sorted(rejections, key=lambda row: (row.source, row.file, row.line, row.reason))
    return pd.DataFrame([astuple(row) for row in ordered], columns=REJECTED_COLUMNS)


@dataclass(frozen=True)
class CsvRows:
    """The rows of one file as text.

    Shapes: `frame` has the wanted columns and `line`, the line a row begins at (the header is line 1).
    `rows_in` counts all rows but the header: those of `frame` and those of `rejections`.
    """

    frame: pd.DataFrame
    rejections: tuple[Rejection, ...]
    rows_in: int


def read_rows(source: str, path: Path, columns: Sequence[str]) -> CsvRows:
    """Read the named columns of a CSV file, compressed when its name ends in .gz; other columns are left out.

    A row with another number of fields than the header, a repeated header and a row that is not UTF-8 are quarantined.

    Raises: UserError when the file is absent, empty, broken, not a table, or lacks a column or has it twice.
    """
    path = Path(path)
    try:
        with _open(path) as file:
            header = _header(path, file, columns)
            kept, rejections = _rows(source, path, file, header)
    except FileNotFoundError:
        raise UserError(f"source {source!r} must have the file {path.name}", f"{path} is not there", _REMEDY) from None
    except (EOFError, zlib.error, gzip.BadGzipFile, csv.Error) as error:
        raise UserError(f"{path} must be a whole CSV file", str(error), _REMEDY) from None
    if not kept and not rejections:
        raise UserError(f"{path} must have rows", "it has a header only", _REMEDY)
    frame = pd.DataFrame([row for _, row in kept], columns=header, dtype="str")[list(columns)]
    frame["line"] = [line for line, _ in kept]
    return CsvRows(frame, tuple(rejections), len(kept) + len(rejections))


def _open(path: Path) -> TextIO:
    # Undecodable bytes become U+FFFD here, so that they cost their own row and not the file.
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="")
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def _header(path: Path, file: TextIO, columns: Sequence[str]) -> list[str]:
    first = file.readline(MAX_HEADER)
    if not first.strip():
        raise UserError(f"{path} must have a header line", "its first line is empty", _REMEDY)
    if len(first) == MAX_HEADER:
        raise UserError(f"the header of {path} must be shorter than {MAX_HEADER} characters", "it is not", _REMEDY)
    header = [name.strip() for name in next(csv.reader([first]))]
    missing = [name for name in columns if name not in header]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UserError(
            f"{path} must have the column {missing[0]!r}", f"missing: {', '.join(missing[:3])}{more}", _REMEDY
        )
    twice = [name for name in columns if header.count(name) > 1]
    if twice:
        raise UserError(f"{path} must have the column {twice[0]!r} once", f"found {header.count(twice[0])}", _REMEDY)
    return header


def _rows(
    source: str, path: Path, file: TextIO, header: list[str]
) -> tuple[list[tuple[int, list[str]]], list[Rejection]]:
    kept: list[tuple[int, list[str]]] = []
    rejections: list[Rejection] = []
    reader = csv.reader(file)
    begin = 2
    for fields in reader:
        line, begin = begin, reader.line_num + 2
        if not fields:
            continue
        reason, detail = _defect(fields, header)
        if reason:
            rejections.append(Rejection(source, path.name, line, reason, detail))
        else:
            kept.append((line, fields))
    return kept, rejections


def _defect(fields: list[str], header: list[str]) -> tuple[str, str]:
    if len(fields) != len(header):
        return "wrong_field_count", f"{len(fields)} fields, the header has {len(header)}"
    if [field.strip() for field in fields] == header:
        return "repeated_header", ""
    broken = [name for name, field in zip(header, fields, strict=True) if _UNDECODABLE in field]
    return ("not_utf8", broken[0]) if broken else ("", "")
