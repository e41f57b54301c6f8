"""Locations of source files on this machine: the cache, the mirror folders, the embedded data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypedDict

from rich.filesize import decimal

from perfcast.domain import domains
from perfcast.sources.source_spec import MANIFEST, Snapshot, SourceFile, SourceSpec
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object, sha256

NOT_FOUND = "not found"
MIRROR_VARIABLE = "PERFCAST_MIRROR"
CACHE_VARIABLE = "PERFCAST_CACHE"
PACKED_SUFFIX = ".tar.gz"


class SourcePlaces(TypedDict):
    """Folders of this machine that are searched for files: the cache, the mirrors, the data of the project itself."""

    cache: Path
    mirrors: Sequence[Path]
    embedded: Path


def find_places(project: Path, mirrors: Sequence[str], environment: Mapping[str, str]) -> SourcePlaces:
    """Return the folders of a project: PERFCAST_CACHE or one inside it, and the mirrors.

    Mirrors of PERFCAST_MIRROR come first, and the folders `data` of domains last.
    """
    named = [entry for entry in environment.get(MIRROR_VARIABLE, "").split(os.pathsep) if entry]
    return {
        "cache": project / environment.get(CACHE_VARIABLE, ".perfcast-cache"),
        "mirrors": [
            *(project / entry for entry in (*named, *mirrors)),
            *(domain.folder / "data" for domain in domains()[1:]),
        ],
        "embedded": embedded_folder(project),
    }


def embedded_folder(project: Path) -> Path:
    """Return the folder of the data that is versioned with the project itself."""
    return project / "data" / "embedded"


def present_sources(raw: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the folders of the sources that were ingested, by name.

    Raises: UserError when a file differs from the checksum of its ingestion.
    """
    manifests = {name: read_object(raw / name / MANIFEST, "status") for name in names}
    present = {name: raw / name for name, manifest in manifests.items() if manifest["status"] == "present"}
    for name, folder in present.items():
        for file in manifests[name].get("files", ()):
            path = folder / file["name"]
            if not path.is_file() or sha256(path) != file["sha256"]:
                fact = f"{path} {'has changed since' if path.is_file() else 'is missing'}"
                raise UserError("ingested files must stay as they are", fact, f"delete {folder} and run again")
    return present


@dataclass(frozen=True)
class FileLocation:
    """One path at which a file may be; `folder` is the cache, mirror or embedded folder that contains it."""

    kind: str
    folder: Path
    path: Path

    def __str__(self) -> str:
        return f"{self.kind} {self.folder}"


@dataclass(frozen=True)
class FailedAttempt:
    """One origin that did not provide a file.

    `reason` contains no path, because it goes to the manifest: equal input must give equal bytes.
    """

    file: str
    kind: str
    origin: str
    reason: str


@dataclass(frozen=True)
class LocatedFile:
    """A file on this machine whose checksum has not been verified."""

    name: str
    location: FileLocation
    bytes: int


@dataclass(frozen=True)
class LocatedSource:
    """The files of one whole snapshot on this machine; without one, `files` is empty and `reason` says why."""

    source: str
    snapshot: str | None
    files: tuple[LocatedFile, ...]
    reason: str

    @property
    def is_local(self) -> bool:
        """True when every file of one snapshot is on this machine."""
        return bool(self.files)


def cached_path(cache: Path, sha256: str) -> Path:
    """Return the path of the file with that checksum in the cache: <cache>/sha256/<first two digits>/<sha256>."""
    return cache / "sha256" / sha256[:2] / sha256


def packed_path(file: SourceFile, mirror: Path) -> Path | None:
    """Return the archive of a mirror that may hold a file: <mirror>/<folder>/<folder>.tar.gz; None without a mirror."""
    if file.mirror is None:
        return None
    top = PurePosixPath(str(file.mirror)).parts[0]
    return mirror / top / f"{top}{PACKED_SUFFIX}"


def list_locations(
    file: SourceFile, cache: Path, mirrors: Sequence[Path], embedded: Path, earlier: Path | None = None
) -> list[FileLocation]:
    """Return where a file may be on this machine, in the order of the search.

    `earlier` is the folder of an earlier ingestion: where all else is gone, its files are still those of the checksums.
    """
    if file.sha256 is None:
        return [FileLocation("embedded", embedded, embedded / file.name)]
    locations = [FileLocation("cache", cache, cached_path(cache, file.sha256))]
    if file.mirror is not None:
        locations += [FileLocation("mirror", mirror, mirror / file.mirror) for mirror in mirrors]
    if earlier is not None and (earlier / file.name).is_file():
        locations.append(FileLocation("results", earlier, earlier / file.name))
    return locations


def find_obstacle(file: SourceFile, path: Path) -> str:
    """Return, without reading the file, why `path` cannot be the declared file; empty if it can."""
    try:
        if not path.exists():
            return NOT_FOUND
        if not path.is_file():
            return "not a regular file"
        length = path.stat().st_size
    except OSError as error:
        return f"cannot be read ({error.strerror or 'input/output error'})"
    if length > file.max_bytes:
        return f"{length} bytes, more than the {file.max_bytes} declared"
    return ""


def format_attempts(attempts: Iterable[FailedAttempt], *, with_paths: bool) -> str:
    """Return failed attempts as one line; files that failed for the same reasons share an entry."""
    reasons: dict[str, dict[str, None]] = {}
    for attempt in attempts:
        origin = f" {attempt.origin}" if with_paths else ""
        reasons.setdefault(attempt.file, {})[f"{attempt.kind}{origin}: {attempt.reason}"] = None
    files: dict[str, list[str]] = {}
    for file, lines in reasons.items():
        files.setdefault("; ".join(lines), []).append(file)
    return "; ".join(f"{', '.join(names)} ({line})" for line, names in files.items())


def locate_source(
    spec: SourceSpec, *, cache: Path, mirrors: Sequence[Path], embedded: Path, earlier: Path | None = None
) -> LocatedSource:
    """Return the first snapshot that is whole on this machine, evaluated by names and sizes; nothing is read."""
    attempts: list[FailedAttempt] = []
    for snapshot in spec.snapshots:
        candidates = [
            _locate_file(file, list_locations(file, cache, mirrors, embedded, earlier), attempts)
            for file in snapshot.files
        ]
        files = tuple(file for file in candidates if file is not None)
        if len(files) == len(snapshot.files):
            return LocatedSource(spec.name, snapshot.name, files, "")
    return LocatedSource(spec.name, None, (), format_attempts(attempts, with_paths=True))


def tabulate_sources(
    specs: Iterable[SourceSpec], *, cache: Path, mirrors: Sequence[Path], embedded: Path
) -> list[dict[str, str]]:
    """Return one table row per source: name, location or why it is not on this machine, size, license."""
    rows = []
    for spec in specs:
        located = locate_source(spec, cache=cache, mirrors=mirrors, embedded=embedded)
        archives = [] if located.is_local else find_archives(spec, mirrors)
        location = f"not on this machine: {located.reason}"
        if located.is_local:
            location = _format_location(located)
        elif archives:
            location = f"packed: {', '.join(map(str, archives))}"
        rows.append(
            {
                "name": spec.name,
                "location": location,
                "size": _format_size(spec.snapshots, located),
                "license": spec.license,
            }
        )
    return rows


def find_archives(spec: SourceSpec, mirrors: Sequence[Path]) -> list[Path]:
    """Return the archives of the first mirror that has one for every file of a snapshot; nothing is read."""
    for snapshot in spec.snapshots:
        for mirror in mirrors:
            archives = {packed_path(file, mirror) for file in snapshot.files}
            known = sorted(path for path in archives if path is not None and path.is_file())
            if known and len(known) == len(archives):
                return known
    return []


def _locate_file(
    file: SourceFile, locations: Iterable[FileLocation], attempts: list[FailedAttempt]
) -> LocatedFile | None:
    for location in locations:
        reason = find_obstacle(file, location.path)
        size = 0 if reason else location.path.stat().st_size
        if not reason and file.size is not None and size != file.size:
            reason = f"{size} bytes, not the {file.size} declared"
        if not reason:
            return LocatedFile(file.name, location, size)
        attempts.append(FailedAttempt(file.name, location.kind, str(location.folder), reason))
    return None


def _format_location(located: LocatedSource) -> str:
    snapshot = f" (snapshot {located.snapshot})" if located.snapshot else ""
    return ", ".join(dict.fromkeys(str(file.location) for file in located.files)) + snapshot


def _format_size(snapshots: Sequence[Snapshot], located: LocatedSource) -> str:
    if located.is_local:
        return decimal(sum(file.bytes for file in located.files))
    sizes = [file.size for file in snapshots[0].files]
    return decimal(sum(size for size in sizes if size)) if all(sizes) else "unknown"
