"""Members of a gzip-compressed tar archive, read into memory: nothing is unpacked, so nothing can leave a folder."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from perfcast.errors import UserError

LARGEST_ARCHIVE = 64 << 20
"""Bytes after decompression."""
MOST_MEMBERS = 100_000

_REMEDY = "the file is not the published one, fetch it again"


def read_members(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the content of the plain files `names`, each one folder deep in whatever folder the archive holds.

    Links, devices and everything with another name are passed over unread.
    Raises: UserError when the archive is absent, damaged or too large, or does not hold each name once.
    """
    found: dict[str, list[bytes]] = {name: [] for name in names}
    try:
        with tarfile.open(fileobj=io.BytesIO(_decompressed(path)), mode="r:") as archive:
            for number, member in enumerate(archive):
                if number >= MOST_MEMBERS:
                    raise UserError(f"{path.name} must hold at most {MOST_MEMBERS} members", "it holds more", _REMEDY)
                folder, _, name = member.name.rpartition("/")
                file = archive.extractfile(member) if name in found and _is_plain(folder) and member.isreg() else None
                if file is not None:
                    found[name].append(file.read())
    except tarfile.TarError as error:
        raise UserError(f"{path.name} must be a whole tar archive", f"it is damaged ({error})", _REMEDY) from None
    for name, contents in found.items():
        if len(contents) != 1:
            raise UserError(f"{path.name} must hold one file {name}", f"it holds {len(contents)}", _REMEDY)
    return {name: contents[0] for name, contents in found.items()}


def _is_plain(folder: str) -> bool:
    """Whether a member lies in one named folder: neither in the root, nor deeper, nor above."""
    return folder not in {"", ".", ".."} and "/" not in folder and "\\" not in folder


def _decompressed(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            content = file.read(LARGEST_ARCHIVE + 1)
    except FileNotFoundError:
        raise UserError(f"{path.name} must be there", "there is no such file", "ingest the source again") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path.name} must be a whole gzip file", f"it is damaged ({error})", _REMEDY) from None
    if len(content) > LARGEST_ARCHIVE:
        raise UserError(f"{path.name} must unpack to at most {LARGEST_ARCHIVE} bytes", "it is larger", _REMEDY)
    return content
