"""Tell, without reading or fetching anything, where a source's files are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from perfcast.sources._places import Attempt, Place, in_words, local_places, obstacle
from perfcast.sources.base import Snapshot, SourceFile, SourceSpec


@dataclass(frozen=True)
class LocatedFile:
    """A file that is on this machine, its checksum not yet known."""

    name: str
    place: Place
    bytes: int


@dataclass(frozen=True)
class Location:
    """Where a source's files are on this machine, or why not: `files` is one whole snapshot, else empty."""

    source: str
    snapshot: str | None
    files: tuple[LocatedFile, ...]
    why_not: str

    @property
    def found(self) -> bool:
        """Whether every file of one snapshot is on this machine."""
        return bool(self.files)


def locate(spec: SourceSpec, *, cache: Path, mirrors: Sequence[Path], embedded: Path) -> Location:
    """Find one whole snapshot of a source on this machine by name and size alone."""
    attempts: list[Attempt] = []
    for snapshot in spec.snapshots:
        located = [
            _locate_file(file, local_places(file, cache, mirrors, embedded), attempts) for file in snapshot.files
        ]
        files = tuple(file for file in located if file is not None)
        if len(files) == len(snapshot.files):
            return Location(spec.name, snapshot.name, files, "")
    return Location(spec.name, None, (), in_words(attempts, paths=True))


def describe(
    specs: Iterable[SourceSpec], *, cache: Path, mirrors: Sequence[Path], embedded: Path
) -> list[dict[str, str]]:
    """Return one row per source for a table: name, where it was found or why not, size, licence."""
    rows = []
    for spec in specs:
        location = locate(spec, cache=cache, mirrors=mirrors, embedded=embedded)
        rows.append(
            {
                "name": spec.name,
                "found": _found(location) if location.found else f"not on this machine: {location.why_not}",
                "size": _size(spec.snapshots, location),
                "licence": spec.licence,
            }
        )
    return rows


def _locate_file(file: SourceFile, places: Iterable[Place], attempts: list[Attempt]) -> LocatedFile | None:
    for place in places:
        fact = obstacle(file, place.path)
        size = 0 if fact else place.path.stat().st_size
        if not fact and file.size is not None and size != file.size:
            fact = f"{size} bytes, not the {file.size} declared"
        if not fact:
            return LocatedFile(file.name, place, size)
        attempts.append(Attempt(file.name, place.kind, str(place.folder), fact))
    return None


def _found(location: Location) -> str:
    which = f" (snapshot {location.snapshot})" if location.snapshot else ""
    return ", ".join(dict.fromkeys(str(file.place) for file in location.files)) + which


def _size(snapshots: Sequence[Snapshot], location: Location) -> str:
    if location.found:
        return decimal(sum(file.bytes for file in location.files))
    sizes = [file.size for file in snapshots[0].files]
    return decimal(sum(size for size in sizes if size)) if all(sizes) else "unknown"
