"""Files from outside: decompression, archives and CSV lines, each with a bound on the bytes in memory."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

PLAIN = "plain"
GZIP = "gzip"
XZ = "xz"
MAGIC = {GZIP: b"\x1f\x8b", XZ: b"\xfd7zXZ\x00"}
FETCH_AGAIN = "the file differs from the published one; delete it and run the ingestion again"
"""Remedy for a file that was published whole and is broken on this machine."""

_SUFFIXES = {".gz": GZIP, ".xz": XZ}
_DECOMPRESSION_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
_CHUNK_BYTES = 1 << 16
_ENCRYPTED = 1


def kind_by_name(path: Path) -> str:
    """Return the compression that the suffix of a file name stands for."""
    return _SUFFIXES.get(path.suffix.lower(), PLAIN)


def kind_by_content(path: Path) -> str:
    """Return the compression that the first bytes of a file stand for."""
    with path.open("rb") as file:
        start = file.read(max(map(len, MAGIC.values())))
    return next((kind for kind, magic in MAGIC.items() if start.startswith(magic)), PLAIN)


@contextmanager
def unpacked(
    path: Path, kind: str, *, most: int | None = None, remedy: str = FETCH_AGAIN
) -> Iterator[io.BufferedReader]:
    """Open a file for reading its decompressed bytes, at most `most` of them (default: `bounds.UNPACKED`).

    Raises: UserError, while it is read, when the file decompresses to more, is truncated or damaged; FileNotFoundError
    when it is absent.
    """
    with path.open("rb") as raw:
        bounded = _BoundedReader(raw, kind, path.name, size_limits.UNPACKED if most is None else most, remedy)
        yield io.BufferedReader(cast(io.RawIOBase, bounded), _CHUNK_BYTES)


class _BoundedReader(io.RawIOBase):
    """Raw stream of the decompressed bytes of a file, up to a maximum."""

    def __init__(self, raw: IO[bytes], kind: str, name: str, max_bytes: int, remedy: str) -> None:
        self._kind = kind
        self._name = name
        self._max_bytes = max_bytes
        self._remedy = remedy
        self._stream: Any = raw
        if kind == GZIP:
            self._stream = gzip.GzipFile(fileobj=raw)
        elif kind == XZ:
            self._stream = lzma.LZMAFile(raw)  # noqa: SIM115 - it ends with the raw file
        self._remaining = max_bytes

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes. Raises: UserError."""
        try:
            content = self._stream.read(min(len(buffer), self._remaining + 1))
        except _DECOMPRESSION_ERRORS as error:
            fact = f"it is truncated or damaged ({error})"
            raise UserError(f"{self._name} must be a whole {self._kind} file", fact, self._remedy) from None
        if len(content) > self._remaining:
            requirement = f"{self._name} must have at most {self._max_bytes} bytes"
            fact = "it is larger" if self._kind == PLAIN else "it decompresses to more"
            raise UserError(requirement, fact, self._remedy)
        self._remaining -= len(content)
        buffer[: len(content)] = content
        return len(content)


def check_zip(path: Path, what: str, wanted: Callable[[str], bool], most: int, *, remedy: str, name: str = "") -> None:
    """Check that a file is a zip archive with a member that `wanted` accepts, without decompressing it.

    The declared sizes of all members together may not exceed `most` bytes. A reader takes no more of a member than the
    archive declares, so this bounds the decompressed size even when members share their bytes.

    Args: `what` names the expected kind of file, `name` replaces the file name in messages.
    Raises: UserError.
    """
    name = name or path.name
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except FileNotFoundError:
        raise UserError(f"{name} must be {what}", "there is no such file", remedy) from None
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error):
        fact = "it is truncated, damaged or in another format"
        raise UserError(f"{name} must be {what}", fact, remedy) from None
    if not any(wanted(member.filename) for member in members):
        raise UserError(f"{name} must be {what}", "it is another kind of zip archive", remedy)
    if len(members) > size_limits.MEMBERS:
        requirement = f"{name} must have at most {size_limits.MEMBERS} members"
        raise UserError(requirement, f"it has {len(members)}", remedy)
    total_bytes = sum(member.file_size for member in members)
    if total_bytes > most:
        raise UserError(f"{name} must decompress to at most {most} bytes", f"it declares {total_bytes}", remedy)
    readable = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(member.compress_type not in readable or member.flag_bits & _ENCRYPTED for member in members):
        raise UserError(f"{name} must be {what}", "its members are encrypted or compressed in another way", remedy)


def read_tar_files(path: Path, wanted: Callable[[str], object]) -> list[tuple[str, bytes]]:
    """Return the path and the content of the regular files of a gzip-compressed tar archive whose path is `wanted`.

    Links, devices and other members are skipped unread. Nothing is extracted, so no member can be written anywhere.

    Raises: UserError when the archive is absent, damaged or too large.
    """
    contents: list[tuple[str, bytes]] = []
    try:
        with unpacked(path, GZIP, most=size_limits.ARCHIVE) as file:
            content = io.BytesIO(file.read())
        with tarfile.open(fileobj=content, mode="r:") as archive:
            for number, member in enumerate(archive):
                if number >= size_limits.MEMBERS:
                    requirement = f"{path.name} must have at most {size_limits.MEMBERS} members"
                    raise UserError(requirement, "it has more", FETCH_AGAIN)
                # a sparse file counts as regular, too, and may declare any size
                if wanted(member.name) and member.isreg() and not member.issparse():
                    contents.append((member.name, cast(IO[bytes], archive.extractfile(member)).read()))
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"{path.name} must exist", "there is no such file", "ingest the source again") from None
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise UserError(f"{path.name} must be a whole tar archive", f"it is damaged ({error})", FETCH_AGAIN) from None
    return contents


def text_lines(file: IO[bytes], name: str, *, remedy: str) -> Iterator[str]:
    """Iterate over the lines of a file with their ends, without a byte order mark; bytes outside UTF-8 become U+FFFD.

    Raises: UserError when a line is longer than `bounds.LINE`.
    """
    text = io.TextIOWrapper(cast(Any, file), encoding="utf-8-sig", errors="replace", newline="")
    number = 0
    while line := text.readline(size_limits.LINE):
        number += 1
        if len(line) == size_limits.LINE:
            requirement = f"every line of {name} must be shorter than {size_limits.LINE} characters"
            raise UserError(requirement, f"line {number} is not", remedy)
        yield line


def header_of(line: str, name: str, *, remedy: str) -> list[str]:
    """Return the fields of the first line of a CSV file, without surrounding blanks.

    Raises: UserError when it is empty, is not CSV, or has more than `bounds.COLUMNS` fields.
    """
    if not line.strip("\ufeff \t\r\n"):
        raise UserError(f"{name} must have a header line", "its first line is empty", remedy)
    if line.count(",") >= size_limits.COLUMNS:
        raise UserError(f"{name} must have at most {size_limits.COLUMNS} columns", "its header has more", remedy)
    try:
        return [field.strip() for field in next(csv.reader([line]))]
    except csv.Error as error:
        raise UserError(f"the header of {name} must be CSV", str(error), remedy) from None


def records(lines: Iterable[str], name: str, *, remedy: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the CSV records as (first line number, fields); empty lines are skipped.

    Raises: UserError when a record cannot be parsed.
    """
    reader = csv.reader(lines)
    line = 2
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise UserError(f"{name} must be a whole CSV file", f"line {line}: {error}", remedy) from None
        if fields is None:
            return
        if fields:
            yield line, fields
        line = reader.line_num + 2
