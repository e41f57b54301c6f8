"""Locations of source files on this machine: the cache, the mirror folders, the embedded data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from perfcast.domain import domains
from perfcast.sources.source_spec import MANIFEST, SourceFile, SourceSpec
from perfcast.utils.io import read_object
from perfcast.utils.result_digests import verify_folder

NOT_FOUND = "not found"
MIRROR_VARIABLE = "PERFCAST_MIRROR"
CACHE_VARIABLE = "PERFCAST_CACHE"


@dataclass(frozen=True)
class SourcePlaces:
    """Folders of this machine that are searched for files: the cache, the mirrors, the data of the project itself.

    `earlier` is that of the last ingestion of a source.
    """

    cache: Path
    mirrors: Sequence[Path]
    embedded: Path
    earlier: Path | None = None


def find_places(
    project: Path, mirrors: Sequence[str], environment: Mapping[str, str], earlier: Path | None = None
) -> SourcePlaces:
    """Return the folders of a project: PERFCAST_CACHE or one inside it, and the mirrors.

    Mirrors of PERFCAST_MIRROR come first, and the folders `data` of domains that have one last.
    """
    named = [entry for entry in environment.get(MIRROR_VARIABLE, "").split(os.pathsep) if entry]
    folders = [project / entry for entry in (*named, *mirrors)]
    folders += [folder for domain in domains()[1:] if (folder := domain.folder / "data").is_dir()]
    cache = project / environment.get(CACHE_VARIABLE, ".perfcast-cache")
    return SourcePlaces(cache, folders, embedded_folder(project), earlier)


def embedded_folder(project: Path) -> Path:
    """Return the folder of the data that is versioned with the project itself."""
    return project / "data" / "embedded"


def present_sources(raw: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the folders of the sources that were ingested, by name; one that no experiment listed has no folder.

    Raises: UserError when a file differs from that of its ingestion.
    """
    ingested = [name for name in names if (raw / name).is_dir() or not raw.is_dir()]
    manifests = {name: read_object(raw / name / MANIFEST, "status") for name in ingested}
    present = {name: raw / name for name, manifest in manifests.items() if manifest["status"] == "present"}
    for folder in present.values():
        verify_folder(folder)
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
class LocatedSource:
    """Locations of the files of a source on this machine; without them, `attempts` say why.

    Units: size: bytes, None if unknown.
    """

    locations: tuple[FileLocation, ...]
    size: int | None
    attempts: tuple[FailedAttempt, ...] = ()

    @property
    def is_local(self) -> bool:
        """True when every file is on this machine."""
        return bool(self.locations)


def cached_path(cache: Path, sha256: str) -> Path:
    """Return the path of a file in the cache, by its checksum."""
    return cache / "sha256" / sha256[:2] / sha256


def list_locations(file: SourceFile, places: SourcePlaces) -> list[FileLocation]:
    """Return where a file may be on this machine, in the order of the search.

    Where all else is gone, the files of an earlier ingestion are still those of the checksums.
    """
    if file.sha256 is None:
        return [FileLocation("embedded", places.embedded, places.embedded / (file.path or file.name))]
    locations = [FileLocation("cache", places.cache, cached_path(places.cache, file.sha256))]
    if file.mirror is not None:
        locations += [FileLocation("mirror", mirror, mirror / file.mirror) for mirror in places.mirrors]
    if places.earlier is not None and (places.earlier / file.name).is_file():
        locations.append(FileLocation("results", places.earlier, places.earlier / file.name))
    return locations


def find_obstacle(file: SourceFile, location: FileLocation) -> str:
    """Return, without reading the file, why `location` cannot have the declared file; empty if it can."""
    try:
        if not location.path.exists():
            return NOT_FOUND
        if not location.path.is_file():
            return "not a regular file"
        length = location.path.stat().st_size
    except OSError as error:
        return f"cannot be read ({error.strerror or 'input/output error'})"
    if file.size in (None, length) and length <= file.max_bytes:
        return ""
    return f"{length} bytes, {f'not the {file.size}' if file.size else f'more than the {file.max_bytes}'} declared"


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


def rejections(attempts: Iterable[FailedAttempt]) -> list[FailedAttempt]:
    """Return the attempts that found something, but not the declared file."""
    return [attempt for attempt in attempts if attempt.reason != NOT_FOUND]


def locate_source(spec: SourceSpec, places: SourcePlaces) -> LocatedSource:
    """Return the files of the first edition that is whole on this machine, by names and sizes; nothing is read."""
    attempts: list[FailedAttempt] = []
    for files in spec.editions:
        located = []
        for file in files:
            for location in list_locations(file, places):
                if not (reason := find_obstacle(file, location)):
                    located.append(location)
                    break
                attempts.append(FailedAttempt(file.name, location.kind, str(location.folder), reason))
        if len(located) == len(files):
            return LocatedSource(tuple(located), _total_bytes(files, located))
    return LocatedSource((), _total_bytes(spec.editions[-1], []), tuple(attempts))


def _total_bytes(files: Sequence[SourceFile], locations: Sequence[FileLocation]) -> int | None:
    """Return the declared bytes of files, else those that they have; None where a length is unknown."""
    sizes = [file.size for file in files]
    if not all(sizes):
        sizes = [place.path.stat().st_size for place in locations]
    return sum(size or 0 for size in sizes) if sizes and all(size is not None for size in sizes) else None


def tabulate_sources(specs: Iterable[SourceSpec], places: SourcePlaces) -> list[dict[str, object]]:
    """Return one row per source: name, way to get it, size, license."""
    rows: list[dict[str, object]] = []
    for spec in specs:
        located = locate_source(spec, places)
        way = ", ".join(dict.fromkeys(map(str, located.locations)))
        if not located.is_local:
            way = f"to be downloaded from {spec.homepage}"
            if rejected := rejections(located.attempts):
                way += f"; {format_attempts(rejected, with_paths=True)}"
        size = "unknown" if located.size is None else decimal(located.size)
        rows.append({"name": spec.name, "way": way, "size": size, "license": spec.license})
    return rows
