"""Reader of a dump of published SPEC results, and the quarantine of its rows."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from operator import itemgetter
from pathlib import Path
from typing import IO

import pandas as pd
import pyarrow as pa

from perfcast.data.strict_csv import CsvRows, Rejection, limit_rows, require_rows
from perfcast.sources.bounded_files import header_of, kind_by_content, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

_ROWS_AT_ONCE = 1 << 16
"""Number of rows buffered as lists before they move to a table."""

_UNUSED_LAST = ("Disclosure URL", "Disclosures")
"""Last names of the header, without fields in the rows of SPEC's dumps."""

_REMEDY = "ingest the source again"
_SHOWN = 120
_ENDINGS = (".csv", ".csv.gz", ".csv.xz")


def read_dump(
    source: str,
    path: Path,
    columns: Sequence[str],
    plain: Collection[str] = (),
    optional: Collection[str] = (),
) -> CsvRows:
    """Read columns of a dump as text, and the line of each row; skip blank lines.

    A row is quarantined when it is not UTF-8, not CSV, too long, a repeated header, or differs from the header in its
    number of fields.

    Args:
        source: Name of the source, for rejections and errors.
        path: The dump, compressed or not.
        columns: Columns to read.
        plain: Columns to keep as plain text; the others are coded (`distinct_texts.py`), which stores each distinct
            text of a large dump once.
        optional: Further columns to read where the header has them.

    Raises:
        UserError: The file is empty, truncated or not a table, or lacks a column or has it twice.
    """
    if not path.is_file():
        raise UserError(f"source {source!r} must have the file {path.name}", f"{path} is not there", _REMEDY)
    with unpacked(path, kind_by_content(path), most=size_limits.DUMP, remedy=_REMEDY) as file:
        header = _read_header(path, file, columns)
        read = [*columns, *(name for name in optional if name in header)]
        table, rejections = _read_rows(source, path, file, header, read, plain=plain)
    require_rows(table.num_rows, str(path), rejections)
    # split_blocks keeps the columns separate, so that one column does not hold the others in memory
    frame = table.unify_dictionaries().to_pandas(split_blocks=True)
    return CsvRows(frame, tuple(rejections), table.num_rows + len(rejections), tuple(header))


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
    source: str,
    path: Path,
    file: IO[bytes],
    header: list[str],
    columns: Sequence[str],
    *,
    plain: Collection[str],
) -> tuple[pa.Table, list[Rejection]]:
    """Return the texts of the valid rows with their lines, and the rejections."""
    pick = itemgetter(*(header.index(column) for column in columns))
    unused = sum(name in _UNUSED_LAST for name in header[-len(_UNUSED_LAST) :]) if header[-1] in _UNUSED_LAST else 0
    widths = {len(header), len(header) - unused}
    rejections: list[Rejection] = []
    block: list[tuple[object, ...]] = []
    blocks: list[pa.Table] = []

    def move_block() -> None:
        turned = zip(*block, strict=True) if block else [()] * (len(columns) + 1)
        *texts, lines = turned
        arrays = {column: pa.array(values, pa.large_string()) for column, values in zip(columns, texts, strict=True)}
        coded = {column: array if column in plain else array.dictionary_encode() for column, array in arrays.items()}
        blocks.append(pa.table({**coded, "line": pa.array(lines, pa.int64())}))
        block.clear()

    for number, line in _iterate_lines(file):
        fields, reason, detail = _split_fields(line)
        if not reason and fields[0] == header[0] and [" ".join(field.split()) for field in fields] == header:
            reason = "repeated_header"
            detail = ""
        elif not reason and len(fields) not in widths:
            reason = "wrong_field_count"
            detail = f"{len(fields)} fields, the header has {len(header)}"
        if reason:
            rejections.append(Rejection(source, path.name, number, reason, detail))
        else:
            block.append((*pick(fields), number))
        limit_rows(len(blocks) * _ROWS_AT_ONCE + len(block), rejections, path.name, size_limits.DUMP_ROWS)
        if len(block) == _ROWS_AT_ONCE:
            move_block()
    move_block()
    return pa.concat_tables(blocks), rejections


def _iterate_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, and truncate long lines; the header is line 1.

    Raises: UserError for more blank lines than a dump may have rows.
    """
    number = 1
    blank = 0
    while line := file.readline(size_limits.LINE):
        number += 1
        remainder = line
        while remainder and not remainder.endswith(b"\n"):
            remainder = file.readline(size_limits.LINE)
        if line.strip():
            yield number, line
        elif (blank := blank + 1) > size_limits.DUMP_ROWS:
            raise UserError(f"a dump must have at most {size_limits.DUMP_ROWS} blank lines", "it has more", _REMEDY)


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


def find_only_file(source: str, folder: Path) -> Path:
    """Return the only dump of a source's folder. Raises: UserError for none or several."""
    files = sorted(path for path in Path(folder).iterdir() if path.name.endswith(_ENDINGS))
    if len(files) != 1:
        raise UserError(
            f"source {source!r} must be one file {' or '.join(f'*{ending}' for ending in _ENDINGS)}",
            f"{folder} has {', '.join(path.name for path in files) or 'none'}",
            _REMEDY,
        )
    return files[0]


class Quarantine:
    """Collector of the rejected rows of one file; its frames have the column `line_in_file` and a unique index."""

    def __init__(self, source: str, file: str, rejections: tuple[Rejection, ...] = ()) -> None:
        self.source = source
        self.file = file
        self.rejections = list(rejections)

    def reject(
        self,
        frame: pd.DataFrame,
        bad: pd.Series,
        reason: str,
        detail: pd.Series,
    ) -> pd.DataFrame:
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
