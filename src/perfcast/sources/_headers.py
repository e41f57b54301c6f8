"""Structural checks of delimited text files, plain, gzip or xz: quick, bounded, one clear line for what is wrong."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path

from perfcast.errors import UserError
from perfcast.unpacking import header_of, kind_by_name, unpacked

LONGEST_HEADER = 64 * 1024
"""Bytes; the longest real header (247 columns) has 4.8 thousand."""

_CHUNK = 1 << 20
_REMEDY = "the file is not the published one, fetch it again"


def read_header(path: Path) -> list[str]:
    """Return the column names of a CSV file, stripped of surrounding blanks and of a byte order mark.

    Raises: UserError when the file is absent or empty, is not UTF-8, or its header is longer than `LONGEST_HEADER`.
    """
    head = b""
    for chunk in _chunks(path, LONGEST_HEADER + 1):
        head += chunk
        if b"\n" in chunk or len(head) > LONGEST_HEADER:
            break
    line = head.partition(b"\n")[0]
    if not line.strip():
        raise UserError(f"{path.name} must begin with a header", "it is empty or begins with an empty line", _REMEDY)
    if len(line) > LONGEST_HEADER:
        raise UserError(f"the header of {path.name} must have at most {LONGEST_HEADER} bytes", "it is longer", _REMEDY)
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name} must be UTF-8 text", f"byte {error.start} of its header is not", _REMEDY)
    return header_of(text.rstrip("\r"), path.name, remedy=_REMEDY)


def check_csv(
    path: Path, expected: Collection[str], *, encoding_by_row: bool = False, largest: int | None = None
) -> list[str]:
    """Check a whole CSV file and return its header.

    `encoding_by_row` says that the data set quarantines single rows that are not UTF-8, so that they are no reason to
    refuse the file. `largest` is the most bytes after decompression, `bounds.UNPACKED` without.

    Raises: UserError when an expected column is missing or a name is there twice, when the header stands again on the
    second line, when there is no row, or when the content is truncated or not UTF-8.
    """
    header = read_header(path)
    named = [name for name in header if name]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise UserError(
            f"the columns of {path.name} must have different names", f"{twice[0]!r} is there twice", _REMEDY
        )
    for name in expected:
        if name not in header:
            near = get_close_matches(name, sorted(set(named) - set(expected)), n=1)
            fact = f"it has none of that name{f' (it has {near[0]!r})' if near else ''}"
            raise UserError(f"{path.name} must have a column {name!r}", fact, _REMEDY)
    check_text(path, errors="replace" if encoding_by_row else "strict", largest=largest)
    first, second = _first_lines(path)
    if first.removeprefix(codecs.BOM_UTF8).strip() == second.removeprefix(codecs.BOM_UTF8).strip():
        raise UserError(f"{path.name} must have one header", "its second line is the header again", _REMEDY)
    if not second.strip():
        raise UserError(f"{path.name} must have rows", "it has a header only", _REMEDY)
    return header


def check_text(path: Path, errors: str = "strict", largest: int | None = None) -> None:
    """Check that a file is whole and, unless `errors` is "replace", UTF-8 to its end. Raises: UserError."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    line, length = 1, 0
    for chunk in _chunks(path, _CHUNK, largest):
        length += len(chunk)
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            line += error.object[: error.start].count(b"\n")
            raise UserError(f"{path.name} must be UTF-8 text", f"line {line} is not", _REMEDY)
        line += chunk.count(b"\n")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise UserError(f"{path.name} must be UTF-8 text", "it ends within a character", _REMEDY)
    if not length:
        raise UserError(f"{path.name} must have content", "it is empty", _REMEDY)


def _first_lines(path: Path) -> tuple[bytes, bytes]:
    head = b""
    for chunk in _chunks(path, LONGEST_HEADER):
        head += chunk
        if head.count(b"\n") > 1 or len(head) > 2 * LONGEST_HEADER:
            break
    first, _, rest = head.partition(b"\n")
    return first, rest.partition(b"\n")[0]


def _chunks(path: Path, size: int, largest: int | None = None) -> Iterator[bytes]:
    """Give the content of a plain, gzip or xz file piece by piece. Raises: UserError."""
    try:
        with unpacked(path, kind_by_name(path), most=largest, remedy=_REMEDY) as file:
            while chunk := file.read(size):
                yield chunk
    except FileNotFoundError:
        raise UserError(f"{path.name} must be there", "there is no such file", "ingest the source again")
