"""Mirrors that hold the files of a source packed: <mirror>/<folder>/<folder>.tar.gz, with paths below the folder."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from perfcast.sources.locations import cached_path, packed_path
from perfcast.sources.source_spec import SourceFile, SourceSpec

MAX_MEMBERS = 100_000
"""Members of an archive that are looked at."""
_CHUNK_BYTES = 1 << 20


def unpack_mirrors(spec: SourceSpec, cache: Path, mirrors: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Unpack the declared files that lie packed in a mirror; return the archive of each folder with them.

    Only regular members of the declared paths are written, and no more bytes than declared: an archive cannot write
    anything else. A damaged archive gives what could be read of it; checksums are verified later.
    """
    files = [
        file
        for snapshot in spec.snapshots
        for file in snapshot.files
        if file.mirror and file.sha256 and not cached_path(cache, file.sha256).is_file()
    ]
    unpacked: dict[Path, Path] = {}
    for number, mirror in enumerate(mirrors):
        missing = [file for file in files if not (mirror / str(file.mirror)).is_file()]
        for archive in sorted({path for file in missing if (path := packed_path(file, mirror))}):
            if archive.is_file():
                target = folder / f"{number} {archive.name}"
                _unpack(archive, archive.parent.name, missing, target)
                unpacked[target] = archive
    return unpacked


def _unpack(archive: Path, top: str, files: Iterable[SourceFile], target: Path) -> None:
    wanted = {str(PurePosixPath(str(file.mirror)).relative_to(top)): file for file in files if _is_below(file, top)}
    try:
        with tarfile.open(archive, "r:gz") as members:
            for _, member in zip(range(MAX_MEMBERS), members, strict=False):
                file = wanted.pop(str(PurePosixPath(member.name)), None)
                if file is not None and member.isfile() and member.size <= file.max_bytes:
                    _write(members, member, target / str(file.mirror))
                if not wanted:
                    return
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, PermissionError):
        return


def _write(members: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = members.extractfile(member)
    if content is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("wb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            file.write(chunk)


def _is_below(file: SourceFile, top: str) -> bool:
    return PurePosixPath(str(file.mirror)).parts[0] == top
