"""Files from outside as bytes and lines, plain or compressed, of which no more than a bound is ever in memory."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from perfcast import bounds
from perfcast.errors import UserError

PLAIN, GZIP, XZ = "plain", "gzip", "xz"
MAGIC = {GZIP: b"\x1f\x8b", XZ: b"\xfd7zXZ\x00"}
_SUFFIXES = {".gz": GZIP, ".xz": XZ}
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
_CHUNK = 1 << 16
_ENCRYPTED = 1


def kind_by_name(path: Path) -> str:
    """Return the compression that a file's name claims."""
    return _SUFFIXES.get(path.suffix.lower(), PLAIN)


def kind_by_content(path: Path) -> str:
    """Return the compression that a file begins like."""
    with path.open("rb") as file:
        start = file.read(max(map(len, MAGIC.values())))
    return next((kind for kind, magic in MAGIC.items() if start.startswith(magic)), PLAIN)


@contextmanager
def unpacked(
    path: Path, kind: str, *, most: int | None = None, remedy: str = "fetch it again"
) -> Iterator[io.BufferedReader]:
    """Give the content of a file; reading more than `most` bytes of it (default: `bounds.UNPACKED`) is refused.

    Raises: UserError, while it is read, when the file is too large once unpacked, cut off or damaged; FileNotFoundError
    when it is absent.
    """
    with path.open("rb") as raw:
        bounded = _Bounded(raw, kind, path.name, bounds.UNPACKED if most is None else most, remedy)
        yield io.BufferedReader(cast(io.RawIOBase, bounded), _CHUNK)


class _Bounded(io.RawIOBase):
    """The unpacked bytes of a file, up to a number of them."""

    def __init__(self, raw: IO[bytes], kind: str, name: str, most: int, remedy: str) -> None:
        self._kind, self._name, self._most, self._remedy = kind, name, most, remedy
        self._source: Any = raw
        if kind == GZIP:
            self._source = gzip.GzipFile(fileobj=raw)
        elif kind == XZ:
            self._source = _Xz(raw)
        self._left = most

    def readable(self) -> bool:
        """Say so."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes. Raises: UserError."""
        try:
            content = self._source.read(min(len(buffer), self._left + 1))
        except _BROKEN as error:
            fact = f"it is truncated or damaged ({error})"
            raise UserError(f"{self._name} must be a whole {self._kind} file", fact, self._remedy) from None
        if len(content) > self._left:
            requirement = f"{self._name} must have at most {self._most} bytes"
            fact = "it is larger" if self._kind == PLAIN else "it unpacks to more"
            raise UserError(requirement, fact, self._remedy)
        self._left -= len(content)
        buffer[: len(content)] = content
        return len(content)


class _Xz:
    """Unpacks xz with a bounded dictionary, which `lzma.open` takes at the file's word."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._unpacker = raw, self._fresh()
        self._begun = False

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        while True:
            if self._unpacker.eof:
                rest = self._unpacker.unused_data.lstrip(b"\0") or self._raw.read(_CHUNK).lstrip(b"\0")
                if not rest:
                    return b""
                self._unpacker = self._fresh()
            elif self._unpacker.needs_input:
                rest = self._raw.read(_CHUNK)
                if not rest:
                    raise EOFError("it ends before its end-of-stream marker")
            else:
                rest = b""
            if found := self._unpacker.decompress(rest, size):
                return found

    @staticmethod
    def _fresh() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=bounds.DICTIONARY)


def check_zip(path: Path, what: str, wanted: Callable[[str], bool], most: int, *, remedy: str, name: str = "") -> None:
    """Check that a file is a zip archive with a wanted member, of plain size; nothing of it is unpacked.

    `what` says what the file is to be, `name` how errors call it. A reader takes no more of a member than the archive
    declares, so the sum bounds what is unpacked, of members that share their bytes as well.
    Raises: UserError.
    """
    name = name or path.name
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except FileNotFoundError:
        raise UserError(f"{name} must be {what}", "there is no such file", remedy) from None
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error):
        fact = "it is truncated, damaged or another format"
        raise UserError(f"{name} must be {what}", fact, remedy) from None
    if not any(wanted(member.filename) for member in members):
        raise UserError(f"{name} must be {what}", "it is another kind of zip archive", remedy)
    if len(members) > bounds.MEMBERS:
        requirement = f"{name} must hold at most {bounds.MEMBERS} members"
        raise UserError(requirement, f"it holds {len(members)}", remedy)
    unpacked_size = sum(member.file_size for member in members)
    if unpacked_size > most:
        raise UserError(f"{name} must unpack to at most {most} bytes", f"it declares {unpacked_size}", remedy)
    packed = [member for member in members if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)]
    if packed or any(member.flag_bits & _ENCRYPTED for member in members):
        raise UserError(f"{name} must be {what}", "its members are encrypted or packed in another way", remedy)


def text_lines(file: IO[bytes], name: str, *, remedy: str) -> Iterator[str]:
    """Give the lines of a file as text with their ends, a byte order mark left out; what is not UTF-8 is U+FFFD.

    Raises: UserError when a line is longer than `bounds.LINE`.
    """
    text = io.TextIOWrapper(cast(Any, file), encoding="utf-8-sig", errors="replace", newline="")
    number = 0
    while line := text.readline(bounds.LINE):
        number += 1
        if len(line) == bounds.LINE:
            requirement = f"every line of {name} must be shorter than {bounds.LINE} characters"
            raise UserError(requirement, f"line {number} is not", remedy)
        yield line


def header_of(line: str, name: str, *, remedy: str) -> list[str]:
    """Return the fields of a CSV file's first line, without surrounding blanks.

    Raises: UserError when it is empty, no CSV, or has more than `bounds.COLUMNS` of them.
    """
    if not line.strip("\ufeff \t\r\n"):
        raise UserError(f"{name} must have a header line", "its first line is empty", remedy)
    if line.count(",") >= bounds.COLUMNS:
        raise UserError(f"{name} must have at most {bounds.COLUMNS} columns", "its header has more", remedy)
    try:
        return [field.strip() for field in next(csv.reader([line]))]
    except csv.Error as error:
        raise UserError(f"the header of {name} must be CSV", str(error), remedy) from None


def records(lines: Iterable[str], name: str, *, begin: int = 2, remedy: str) -> Iterator[tuple[int, list[str]]]:
    """Give the fields of every CSV record with the line it begins at; empty lines are none.

    Raises: UserError where a record cannot be read.
    """
    reader = csv.reader(lines)
    line = begin
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise UserError(f"{name} must be a whole CSV file", f"line {line}: {error}", remedy) from None
        if fields is None:
            return
        if fields:
            yield line, fields
        line = reader.line_num + begin
