"""Reader of a dump of published SPEC results, and the quarantine of its rows."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from perfcast.data.strict_csv import CsvRows, Rejection, limit_rows, require_rows
from perfcast.sources.bounded_files import header_of, kind_by_content, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

_ROWS_AT_ONCE = 1 << 16
"""Number of rows buffered as lists before they move to arrays."""

_UNUSED_LAST = ("Disclosure URL", "Disclosures")
"""Last names of the header, without fields in the rows of SPEC's dumps."""

_REMEDY = "ingest the source again"
_SHOWN = 120


def read_dump(source: str, path: Path, columns: Sequence[str], plain: Collection[str] | None = None) -> CsvRows:
    """Read columns of a dump as text, and the line of each row; skip blank lines.

    A row is quarantined when it is not UTF-8, not CSV, too long, a repeated header, or differs from the header in its
    number of fields.

    Args:
        source: Name of the source, for rejections and errors.
        path: The dump, compressed or not.
        columns: Columns to read.
        plain: Columns to keep as plain text; the others are coded (`distinct_texts.py`), which stores each distinct
            text of a large dump once. None keeps all as plain text.

    Raises:
        UserError: The file is empty, truncated or not a table, or lacks a column or has it twice.
    """
    if not path.is_file():
        raise UserError(f"source {source!r} must have the file {path.name}", f"{path} is not there", _REMEDY)
    with unpacked(path, kind_by_content(path), most=size_limits.DUMP, remedy=_REMEDY) as file:
        header = _read_header(path, file, columns)
        columns_read = _ColumnBuffers(columns, columns if plain is None else plain)
        rejections = _read_rows(source, path.name, file, header, columns_read)
    require_rows(columns_read.rows, str(path), rejections)
    return CsvRows(columns_read.frame(), tuple(rejections), columns_read.rows + len(rejections))


class _ColumnBuffers:
    """Buffer of the texts read and their lines, moved from lists to arrays block by block."""

    def __init__(self, columns: Sequence[str], plain: Collection[str]) -> None:
        self.columns, self.rows = tuple(columns), 0
        self._codes = {name: _Codes() for name in columns if name not in plain}
        self._block: list[tuple[str, ...]] = []
        self._lines: list[int] = []
        self._arrays: dict[str, list[Any]] = {name: [] for name in (*columns, "line")}

    def add(self, line: int, texts: tuple[str, ...]) -> None:
        self._lines.append(line)
        self._block.append(texts)
        self.rows += 1
        if len(self._block) == _ROWS_AT_ONCE:
            self._move_block()

    def _move_block(self) -> None:
        turned = zip(*self._block, strict=True) if self._block else ((),) * len(self.columns)
        for name, texts in zip(self.columns, turned, strict=True):
            if name in self._codes:
                numbers = map(self._codes[name].__getitem__, texts)
                self._arrays[name].append(np.fromiter(numbers, dtype=np.int32, count=len(texts)))
            else:
                self._arrays[name].append(pa.array(texts, pa.large_string()))
        self._arrays["line"].append(np.array(self._lines, dtype=np.int64))
        self._block, self._lines = [], []

    def frame(self) -> pd.DataFrame:
        self._move_block()
        series = {}
        for name in self.columns:
            parts = self._arrays.pop(name)
            if name in self._codes:
                categories = pd.Index(list(self._codes[name]), dtype="str")
                series[name] = pd.Series(pd.Categorical.from_codes(np.concatenate(parts), categories))
            else:
                series[name] = pa.chunked_array(parts, pa.large_string()).to_pandas()
        return pd.DataFrame({**series, "line": np.concatenate(self._arrays["line"])}, copy=False)


class _Codes(dict[str, int]):
    """Mapping of texts to consecutive codes; a new text gets the next code."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def _read_header(path: Path, file: IO[bytes], columns: Sequence[str]) -> list[str]:
    line = file.readline(size_limits.LINE).decode("utf-8-sig", errors="replace")
    names = [" ".join(name.split()) for name in header_of(line, str(path), remedy=_REMEDY)]
    if "Disclosure" not in names:  # an extract keeps one of the two
        names = ["Disclosure" if name == "Disclosures" else name for name in names]
    for column in columns:
        if names.count(column) != 1:
            near = get_close_matches(column, [name for name in names if name not in columns], n=1, cutoff=0.4)
            hint = f", the nearest unknown one is {near[0]!r}" if near else ""
            raise UserError(
                f"{path} must have the column {column!r} once",
                f"found it {names.count(column)} times among {len(names)}{hint}",
                _REMEDY,
            )
    return names


def _read_rows(
    source: str, name: str, file: IO[bytes], header: list[str], columns_read: _ColumnBuffers
) -> list[Rejection]:
    """Add the valid rows of the file to `columns_read`, and return the rejections."""
    pick = itemgetter(*(header.index(column) for column in columns_read.columns))
    widths = {len(header), len(header) - sum(name in _UNUSED_LAST for name in header[-len(_UNUSED_LAST) :])}
    rejections: list[Rejection] = []
    for number, line in _iterate_lines(file):
        fields, reason, detail = _split_fields(line)
        if not reason and fields[0] == header[0] and [" ".join(field.split()) for field in fields] == header:
            reason, detail = "repeated_header", ""
        elif not reason and len(fields) not in widths:
            reason, detail = "wrong_field_count", f"{len(fields)} fields, the header has {len(header)}"
        if reason:
            rejections.append(Rejection(source, name, number, reason, detail))
        else:
            columns_read.add(number, pick(fields))
        limit_rows(columns_read.rows, rejections, name, size_limits.DUMP_ROWS)
    return rejections


def _iterate_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, and truncate long lines; the header is line 1."""
    number = 1
    while line := file.readline(size_limits.LINE):
        number += 1
        remainder = line
        while remainder and not remainder.endswith(b"\n"):
            remainder = file.readline(size_limits.LINE)
        if line.strip():
            yield number, line


def _split_fields(line: bytes) -> tuple[list[str], str, str]:
    """Return the fields of a line, or no fields with the reason and the detail of a defect."""
    if len(line) == size_limits.LINE:
        return [], "line_too_long", f"longer than {size_limits.LINE} bytes"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return [], "not_utf8", f"byte {line[error.start]:#04x} at {error.start}"
    try:
        return next(csv.reader([text.rstrip("\r\n")], strict=True)), "", ""
    except csv.Error as error:
        return [], "not_csv", str(error)


def find_only_file(source: str, folder: Path, endings: tuple[str, ...] = (".csv", ".csv.gz", ".csv.xz")) -> Path:
    """Return the only file of a source's folder with these endings. Raises: UserError for none or several."""
    files = sorted(path for path in Path(folder).iterdir() if path.name.endswith(endings))
    if len(files) != 1:
        raise UserError(
            f"source {source!r} must be one file {' or '.join(f'*{ending}' for ending in endings)}",
            f"{folder} has {', '.join(path.name for path in files) or 'none'}",
            _REMEDY,
        )
    return files[0]


class Quarantine:
    """Collector of the rejected rows of one file; its frames have the column `line_in_file` and a unique index."""

    def __init__(self, source: str, file: str, rejections: tuple[Rejection, ...] = ()) -> None:
        self.source, self.file, self.rejections = source, file, list(rejections)

    def reject(self, frame: pd.DataFrame, bad: pd.Series, reason: str, detail: pd.Series) -> pd.DataFrame:
        """Quarantine the rows where `bad` holds, and return the others.

        Shapes: `bad` has the frame's index; the index of `detail` contains at least the bad rows.
        """
        if not bad.any():  # also without rows: then `bad` is not boolean and would select columns
            return frame
        lines = frame.loc[bad, "line_in_file"]
        self.rejections += [
            Rejection(self.source, self.file, int(line), reason, str(text)[:_SHOWN])
            for line, text in zip(lines, detail.loc[lines.index], strict=True)
        ]
        return frame[~bad]
