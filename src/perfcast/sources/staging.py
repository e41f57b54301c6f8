"""Search for the files of a source: cache, then mirror folders, then published address."""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from perfcast.sources.download import DownloadError, DownloadLimits, download_file
from perfcast.sources.locations import FailedAttempt, FileLocation, cached_path, find_obstacle, list_locations
from perfcast.sources.source_spec import SourceFile
from perfcast.utils.io import atomic_path

FileProgress = Callable[[str, int, int | None], None]
"""Called with a file's name, the downloaded bytes and, if known, the total bytes."""

_CHUNK_BYTES = 1 << 20
_FULL_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class StagedFile:
    """Verified copy of a file in a folder of this process."""

    path: Path
    sha256: str
    bytes: int
    origin: str


@dataclass
class FileStager:
    """Search for the files of one source that copies verified files to the folder `staging`."""

    staging: Path
    cache: Path
    mirrors: Sequence[Path]
    embedded: Path
    earlier: Path
    progress: FileProgress
    limits: DownloadLimits
    attempts: list[FailedAttempt] = field(default_factory=list)
    staged: dict[SourceFile, StagedFile] = field(default_factory=dict)
    _missing: set[SourceFile] = field(default_factory=set)
    _unreachable: bool = False

    def stage_local(self, file: SourceFile) -> bool:
        """Stage a file from this machine and return whether it was there; every file is searched once."""
        if file in self.staged:
            return True
        if file in self._missing:
            return False
        locations = list_locations(file, self.cache, self.mirrors, self.embedded, self.earlier)
        if any(self._stage(file, location) for location in locations):
            return True
        self._missing.add(file)
        return False

    def stage_download(self, file: SourceFile) -> bool:
        """Download a file to the cache, stage it, and return whether this succeeded.

        After a failure to connect, the remaining files are not tried.
        """
        if file.url is None or file.sha256 is None:
            return False
        if self._unreachable:
            self._record_failure(file, "address", file.url, "not tried, because there is no connection")
            return False
        path = cached_path(self.cache, file.sha256)

        def report(done: int, total: int | None) -> None:
            self.progress(file.name, done, total)

        try:
            download_file(
                file.url,
                file.sha256,
                path,
                size=file.size,
                max_bytes=file.max_bytes,
                limits=self.limits,
                progress=report,
            )
        except DownloadError as error:
            self._unreachable = error.unreachable
            self._record_failure(file, "address", file.url, str(error))
            return False
        return self._stage(file, FileLocation("address", self.cache, path), file.url)

    def _stage(self, file: SourceFile, location: FileLocation, origin: str = "") -> bool:
        """Copy a file and verify the copy, which no other process changes."""
        origin = origin or str(location.folder)
        reason = find_obstacle(file, location.path)
        if reason:
            self._record_failure(file, location.kind, origin, reason)
            return False
        copy = self.staging / str(len(self.staged))
        try:
            digest, length = _copy_file(location.path, copy, file.max_bytes)
        except OSError as error:
            if error.errno in _FULL_DISK_ERRORS:  # the disk of the copy is full; the source is not missing
                raise
            reason = f"cannot be copied ({error.strerror or 'input/output error'})"
            self._record_failure(file, location.kind, origin, reason)
            return False
        if file.sha256 is not None and digest != file.sha256:
            reason = f"wrong checksum, the sha256 is {digest[:12]}… and not {file.sha256[:12]}…"
            self._record_failure(file, location.kind, origin, reason)
            return False
        self.staged[file] = StagedFile(copy, digest, length, f"{location.kind} {origin}")
        if location.kind == "mirror":
            self._keep(copy, digest)
        return True

    def _keep(self, copy: Path, digest: str) -> None:
        """Keep a verified file of a mirror in the cache: a mirror that is gone later costs no data."""
        path = cached_path(self.cache, digest)
        with suppress(OSError), atomic_path(path) as temporary:  # a cache that cannot be written costs no run
            shutil.copyfile(copy, temporary)

    def _record_failure(self, file: SourceFile, kind: str, origin: str, reason: str) -> None:
        self.attempts.append(FailedAttempt(file.name, kind, origin, reason))


def _copy_file(origin: Path, target: Path, max_bytes: int) -> tuple[str, int]:
    """Copy at most `max_bytes` of a file and return the checksum and the length of the copy."""
    digest, length = hashlib.sha256(), 0
    with origin.open("rb") as source, target.open("wb") as copy:
        while chunk := source.read(min(_CHUNK_BYTES, max_bytes - length)):
            digest.update(chunk)
            copy.write(chunk)
            length += len(chunk)
    return digest.hexdigest(), length
