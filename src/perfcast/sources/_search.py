"""Search the origins of a source's files in order: cache, mirror folders, published address."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfcast.io import sha256
from perfcast.sources import _cache
from perfcast.sources._fetch import FetchError, Limits, fetch, notes_path
from perfcast.sources._places import Attempt, Place, local_places, obstacle
from perfcast.sources.base import SourceFile

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes done and the bytes in all, where known."""

_CHUNK = 1 << 20
_OWN_DISK = {errno.ENOSPC, errno.EDQUOT}
"""What says something of the disk that is copied to, not of the place that is copied from."""


@dataclass(frozen=True)
class Staged:
    """Verified bytes, copied to where no one else can change them."""

    path: Path
    sha256: str
    bytes: int
    origin: str


@dataclass
class Search:
    """One search for the files of one source; what is found is copied into `staging`."""

    staging: Path
    cache: Path
    mirrors: Sequence[Path]
    embedded: Path
    progress: Progress
    limits: Limits
    attempts: list[Attempt] = field(default_factory=list)
    found: dict[SourceFile, Staged] = field(default_factory=dict)
    _absent: set[SourceFile] = field(default_factory=set)
    _unreachable: bool = False

    def local(self, file: SourceFile) -> bool:
        """Look for a file on this machine, once."""
        if file in self.found:
            return True
        if file in self._absent:
            return False
        places = local_places(file, self.cache, self.mirrors, self.embedded)
        if any(self._take(file, place) for place in places):
            return True
        self._absent.add(file)
        return False

    def remote(self, file: SourceFile) -> bool:
        """Download a file to the cache and take it from there; False as well when it is published nowhere."""
        if file.url is None or file.sha256 is None:
            return False
        if self._unreachable:
            self._refuse(file, "address", file.url, "not tried, there is no connection")
            return False
        try:
            return self._download(file, file.url, file.sha256)
        except FetchError as error:
            self._unreachable = error.unreachable
            self._refuse(file, "address", file.url, str(error))
            return False

    def _download(self, file: SourceFile, url: str, wanted: str) -> bool:
        target = _cache.verified_path(self.cache, wanted)
        with _cache.unfinished(self.cache, wanted) as part, _cache.writable(target.parent):
            if not target.is_file() or sha256(target) != wanted:
                digest = self._fetch(file, url, part)
                if digest != wanted:
                    kept = _cache.set_aside(self.cache, file.name, digest, part)
                    self._refuse(file, "address", url, _mismatch(wanted, digest), kept)
                    return False
                part.replace(target)
                notes_path(part).unlink(missing_ok=True)
        return self._take(file, Place("address", Path(), target), url)

    def _fetch(self, file: SourceFile, url: str, part: Path) -> str:
        """Download to `part` and return its digest; a wrong one of pieced-together bytes is tried once more, whole."""

        def show(done: int, total: int | None) -> None:
            self.progress(file.name, done, total)

        pieced = fetch(url, part, size=file.size, at_most=file.at_most, limits=self.limits, progress=show)
        if pieced and sha256(part) != file.sha256:
            part.unlink()
            fetch(url, part, size=file.size, at_most=file.at_most, limits=self.limits, progress=show)
        return sha256(part)

    def _take(self, file: SourceFile, place: Place, where: str = "") -> bool:
        """Copy a file into the staging folder and check the copy, which nobody can change afterwards."""
        where = where or str(place.folder)
        fact = obstacle(file, place.path)
        if fact:
            self._refuse(file, place.kind, where, fact)
            return False
        copy = self.staging / str(len(self.found))
        try:
            digest, length = _copy(place.path, copy, file.at_most)
        except OSError as error:
            if error.errno in _OWN_DISK:  # the source is not missing
                raise
            self._refuse(file, place.kind, where, f"cannot be copied ({error.strerror or 'input/output error'})")
            return False
        if file.sha256 is not None and digest != file.sha256:
            kept = _cache.set_aside(self.cache, file.name, digest, copy)
            if place.kind == "cache":
                place.path.unlink()
            self._refuse(file, place.kind, where, _mismatch(file.sha256, digest), kept)
            return False
        self.found[file] = Staged(copy, digest, length, f"{place.kind} {where}")
        return True

    def _refuse(self, file: SourceFile, kind: str, where: str, fact: str, kept: Path | None = None) -> None:
        self.attempts.append(Attempt(file.name, kind, where, fact, kept))


def _copy(origin: Path, target: Path, at_most: int) -> tuple[str, int]:
    """Copy a file and return digest and length of what was copied; bytes beyond `at_most` are left out."""
    digest, length = hashlib.sha256(), 0
    with origin.open("rb") as source, target.open("wb") as copy:
        while chunk := source.read(min(_CHUNK, at_most - length)):
            digest.update(chunk)
            copy.write(chunk)
            length += len(chunk)
    return digest.hexdigest(), length


def _mismatch(wanted: str, found: str) -> str:
    return f"wrong checksum, sha256 must be {wanted[:12]}… and is {found[:12]}…"
