"""Strict reader of CSV files: every row is either valid or quarantined with its line number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from operator import itemgetter
from pathlib import Path

import pandas as pd

from perfcast.data.standardized import REJECTED_COLUMNS
from perfcast.sources.bounded_files import header_of, kind_by_name, records, text_lines, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

_UNDECODABLE = "�"
_REMEDY = "ingest the source again, or delete its folder under results/raw first"


@dataclass(frozen=True)
class Rejection:
    """Quarantined row; the fields are in the order of `REJECTED_COLUMNS`."""

    source: str
    file: str
    line: int
    reason: str
    detail: str


def build_rejected_frame(rejections: Iterable[Rejection]) -> pd.DataFrame:
    """Return quarantined rows as the frame of rejected.csv, ordered by file and line."""
    ordered = sorted(rejections, key=lambda row: (row.source, row.file, row.line, row.reason))
    return pd.DataFrame([astuple(row) for row in ordered], columns=REJECTED_COLUMNS)


def join_rejections(rows: pd.DataFrame, rejections: Iterable[Rejection]) -> pd.DataFrame:
    """Return valid and quarantined rows of files as one table of texts.

    Shapes: `rows` has the columns file and line; the table has the columns reason and detail, too.
    """
    rejected = pd.DataFrame([astuple(row)[1:] for row in rejections], columns=REJECTED_COLUMNS[1:])
    return pd.concat([rows.astype("str"), rejected.astype("str")], ignore_index=True).fillna("")


def split_rejections(source: str, records: pd.DataFrame) -> tuple[pd.DataFrame, list[Rejection]]:
    """Return the valid rows of a table that `join_rejections` made, and the rejections of the others."""
    valid = records["reason"] == ""
    rejected = records.loc[~valid, REJECTED_COLUMNS[1:]]
    rejections = [
        Rejection(source, file, int(line), reason, detail)
        for file, line, reason, detail in rejected.itertuples(index=False)
    ]
    rows = records[valid].drop(columns=["reason", "detail"]).reset_index(drop=True)
    return rows.assign(line=rows["line"].astype("int64")), rejections


def require_rows(accepted: int, what: str, rejections: Sequence[Rejection], remedy: str = _REMEDY) -> None:
    """Require a valid row. Raises: UserError with the most frequent reason, when all rows are quarantined."""
    if not accepted and rejections:
        reason, count = Counter(row.reason for row in rejections).most_common(1)[0]
        fact = f"all {len(rejections)} are rejected, {count} of them as {reason}"
        raise UserError(f"{what} must have rows that can be used", fact, remedy)


def limit_rows(accepted: int, rejections: Sequence[Rejection], what: str, limit: int) -> None:
    """Limit the numbers of accepted and rejected rows. Raises: UserError."""
    if accepted > limit:
        raise UserError(f"{what} must have at most {limit} rows", "it has more", _REMEDY)
    if len(rejections) > size_limits.REJECTED:
        fact = f"more than {size_limits.REJECTED} are rejected, the first as {rejections[0].reason}"
        raise UserError(f"{what} must have rows that can be used", fact, _REMEDY)


@dataclass(frozen=True)
class CsvRows:
    """Rows of one file as text.

    Shapes: `frame` has the requested columns and `line`, the first line of a row (the header is line 1). `rows_in`
    counts the rows of `frame` and of `rejections`.
    """

    frame: pd.DataFrame
    rejections: tuple[Rejection, ...]
    rows_in: int
    header: tuple[str, ...] = ()
    """All names of the header."""


def read_header(path: Path) -> list[str]:
    """Return the names in the header of a CSV file. Raises: UserError when the file is absent, empty or no table."""
    with unpacked(path, kind_by_name(path), most=size_limits.TABLE, remedy=_REMEDY) as file:
        return header_of(next(text_lines(file, str(path), remedy=_REMEDY), ""), str(path), remedy=_REMEDY)


def read_rows(source: str, path: Path, columns: Sequence[str]) -> CsvRows:
    """Read the given columns of a CSV file, which is compressed where its name ends in .gz.

    A row is quarantined when its number of fields differs from the header's, when it repeats the header, or when it is
    not UTF-8.

    Raises:
        UserError: The file is absent, empty, broken or not a table, or lacks a column or has it twice.
    """
    path = Path(path)
    try:
        with unpacked(path, kind_by_name(path), most=size_limits.TABLE, remedy=_REMEDY) as file:
            lines = text_lines(file, str(path), remedy=_REMEDY)
            header = _read_header(path, next(lines, ""), columns)
            accepted, rejections = _read_rows(source, path, lines, header, columns)
    except FileNotFoundError:
        raise UserError(f"source {source!r} must have the file {path.name}", f"{path} is not there", _REMEDY) from None
    if not accepted and not rejections:
        raise UserError(f"{path} must have rows", "it has a header only", _REMEDY)
    require_rows(len(accepted), str(path), rejections)
    frame = pd.DataFrame([row for _, row in accepted], columns=list(columns), dtype="str")
    frame["line"] = [line for line, _ in accepted]
    return CsvRows(frame, tuple(rejections), len(accepted) + len(rejections), tuple(header))


def _read_header(path: Path, line: str, columns: Sequence[str]) -> list[str]:
    header = header_of(line, str(path), remedy=_REMEDY)
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


def _read_rows(
    source: str, path: Path, lines: Iterable[str], header: list[str], columns: Sequence[str]
) -> tuple[list[tuple[int, tuple[str, ...]]], list[Rejection]]:
    # Other columns are dropped at once to save memory.
    pick = itemgetter(*(header.index(column) for column in columns), -1)
    accepted: list[tuple[int, tuple[str, ...]]] = []
    rejections: list[Rejection] = []
    for line, fields in records(lines, str(path), remedy=_REMEDY):
        reason, detail = _find_defect(fields, header)
        if reason:
            rejections.append(Rejection(source, path.name, line, reason, detail))
        else:
            accepted.append((line, pick(fields)[:-1]))
        limit_rows(len(accepted), rejections, str(path), size_limits.TABLE_ROWS)
    return accepted, rejections


def _find_defect(fields: list[str], header: list[str]) -> tuple[str, str]:
    if len(fields) != len(header):
        return "wrong_field_count", f"{len(fields)} fields, the header has {len(header)}"
    if [field.strip() for field in fields] == header:
        return "repeated_header", ""
    broken = [name for name, field in zip(header, fields, strict=True) if _UNDECODABLE in field]
    return ("not_utf8", broken[0]) if broken else ("", "")
