"""Structural checks of source files: CSV headers and encoding, plain, gzip or xz, and machine descriptions."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path

from perfcast.sources.bounded_files import FETCH_AGAIN, header_of, kind_by_name, unpacked
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json

MAX_HEADER_BYTES = 64 * 1024
"""Bytes of a header line; the longest published one (247 columns) has 4.8 thousand."""

_CHUNK_BYTES = 1 << 20


def read_header(path: Path) -> list[str]:
    """Return the column names of a CSV file, stripped of surrounding blanks and of a byte order mark.

    Raises: UserError when the file is absent or empty, is not UTF-8, or its header exceeds `MAX_HEADER_BYTES`.
    """
    line = _read_first_lines(path)[0].removesuffix(b"\n")
    if not line.strip():
        fact = "it is empty or begins with an empty line"
        raise UserError(f"{path.name} must begin with a header", fact, FETCH_AGAIN)
    if len(line) > MAX_HEADER_BYTES:
        requirement = f"the header of {path.name} must have at most {MAX_HEADER_BYTES} bytes"
        raise UserError(requirement, "it is longer", FETCH_AGAIN)
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name} must be UTF-8 text", f"byte {error.start} of its header is not", FETCH_AGAIN)
    return header_of(text.rstrip("\r"), path.name, remedy=FETCH_AGAIN)


def check_csv(
    path: Path, expected: Collection[str], *, encoding_by_row: bool = False, max_bytes: int | None = None
) -> list[str]:
    """Check a whole CSV file and return its header.

    Args: `encoding_by_row` accepts rows that are not UTF-8, because the dataset rejects them one by one. `max_bytes`
    bounds the decompressed size (default: `bounds.UNPACKED`).

    Raises: UserError when an expected column is missing or a name repeats, when the second line repeats the header,
    when there is no row, or when the content is truncated or not UTF-8.
    """
    header = read_header(path)
    names = [name for name in header if name]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        requirement = f"the columns of {path.name} must have different names"
        raise UserError(requirement, f"{duplicates[0]!r} is there twice", FETCH_AGAIN)
    for name in expected:
        if name not in header:
            near = get_close_matches(name, sorted(set(names) - set(expected)), n=1)
            fact = f"there is none of that name{f' (but there is {near[0]!r})' if near else ''}"
            raise UserError(f"{path.name} must have a column {name!r}", fact, FETCH_AGAIN)
    check_text(path, errors="replace" if encoding_by_row else "strict", max_bytes=max_bytes)
    first, second = _read_first_lines(path)
    if first.removeprefix(codecs.BOM_UTF8).strip() == second.removeprefix(codecs.BOM_UTF8).strip():
        raise UserError(f"{path.name} must have one header", "its second line is the header again", FETCH_AGAIN)
    if not second.strip():
        raise UserError(f"{path.name} must have rows", "it has a header only", FETCH_AGAIN)
    return header


def check_text(path: Path, errors: str = "strict", max_bytes: int | None = None) -> None:
    """Check that a file is whole, not empty and, unless `errors` is "replace", UTF-8 to its end. Raises: UserError."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    line, chunk = 1, b""
    with _opened(path, max_bytes) as file:
        if not file.peek(1):
            raise UserError(f"{path.name} must have content", "it is empty", FETCH_AGAIN)
        while chunk := file.read(_CHUNK_BYTES):
            try:
                decoder.decode(chunk, final=not file.peek(1))
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise UserError(f"{path.name} must be UTF-8 text", f"line {line} is not", FETCH_AGAIN)
            line += chunk.count(b"\n")


def check_machine_description(path: Path, remedy: str) -> None:
    """Check that a file contains one JSON object, the description of a measured machine. Raises: UserError."""
    try:
        machine = read_json(path)
    except (OSError, UserError):
        machine = None
    if not isinstance(machine, dict):
        requirement = f"{path.name} must be a JSON object that describes the machine"
        raise UserError(requirement, "it is absent or is not a JSON object", remedy)


def _read_first_lines(path: Path) -> tuple[bytes, bytes]:
    """Return the first line, cut behind `MAX_HEADER_BYTES`, and the second one."""
    with _opened(path) as file:
        first = file.readline(MAX_HEADER_BYTES + 2)
        return first, file.readline(MAX_HEADER_BYTES) if first.endswith(b"\n") else b""


@contextmanager
def _opened(path: Path, max_bytes: int | None = None) -> Iterator[BufferedReader]:
    """Open the decompressed content of a plain, gzip or xz file. Raises: UserError."""
    try:
        with unpacked(path, kind_by_name(path), most=max_bytes) as file:
            yield file
    except FileNotFoundError:
        raise UserError(f"{path.name} must exist", "there is no such file", "ingest the source again")
