"""Tell, without reading or fetching anything, where a source's files are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from perfcast.sources._search import local_candidates, obstacle
from perfcast.sources.base import Snapshot, SourceFile, SourceSpec


@dataclass(frozen=True)
class LocatedFile:
    """A file that is on this machine, its checksum not yet known."""

    name: str
    kind: str
    path: Path
    bytes: int


@dataclass(frozen=True)
class Location:
    """Where a source's files are on this machine, or why not: `files` is one whole snapshot, else empty."""

    source: str
    snapshot: str | None
    files: tuple[LocatedFile, ...]
    why_not: str

    @property
    def available(self) -> bool:
        """Whether every file of one snapshot is on this machine."""
        return bool(self.files)


def locate(spec: SourceSpec, *, cache: Path, mirrors: Sequence[Path], embedded: Path) -> Location:
    """Find one whole snapshot of a source on this machine by name and size alone."""
    reasons: dict[str, None] = {}
    for snapshot in spec.snapshots:
        located = [_locate_file(file, cache, mirrors, embedded, reasons) for file in snapshot.files]
        files = tuple(file for file in located if file is not None)
        if len(files) == len(snapshot.files):
            return Location(spec.name, snapshot.name, files, "")
    return Location(spec.name, None, (), "; ".join(reasons))


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
                "found": _found(location) if location.available else f"not on this machine: {location.why_not}",
                "size": _size(spec.snapshots, location),
                "licence": spec.licence,
            }
        )
    return rows


def _locate_file(
    file: SourceFile, cache: Path, mirrors: Sequence[Path], embedded: Path, reasons: dict[str, None]
) -> LocatedFile | None:
    for kind, path in local_candidates(file, cache, mirrors, embedded):
        try:
            fact = obstacle(file, path)
            size = 0 if fact else path.stat().st_size
        except OSError as error:
            fact = f"cannot be read ({error.strerror or 'input/output error'})"
        if not fact and file.size is not None and size != file.size:
            fact = f"{size} bytes, not the {file.size} declared"
        if not fact:
            return LocatedFile(file.name, kind, path, size)
        reasons[f"{file.name} in {kind}: {fact}"] = None
    return None


def _found(location: Location) -> str:
    kinds = dict.fromkeys(
        file.kind if file.kind == "cache" else f"{file.kind} {file.path.parent}" for file in location.files
    )
    which = f" (snapshot {location.snapshot})" if location.snapshot else ""
    return ", ".join(kinds) + which


def _size(snapshots: Sequence[Snapshot], location: Location) -> str:
    if location.available:
        return decimal(sum(file.bytes for file in location.files))
    sizes = [file.size for file in snapshots[0].files]
    return decimal(sum(size for size in sizes if size)) if all(sizes) else "unknown"
