"""Where a file may be, and how it is told that it was not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfcast.sources import _cache
from perfcast.sources.base import SourceFile

NOT_THERE = "not there"


@dataclass(frozen=True)
class Place:
    """One path on this machine at which a file may be; `folder` is the cache, mirror or embedded folder it is in."""

    kind: str
    folder: Path
    path: Path

    def __str__(self) -> str:
        return f"{self.kind} {self.folder}"


@dataclass(frozen=True)
class Attempt:
    """One origin that did not give a file: what kind, which one, and what was found instead.

    `fact` names no path, so that it may go where equal input must give equal bytes.
    """

    file: str
    kind: str
    where: str
    fact: str
    kept: Path | None = None


def local_places(file: SourceFile, cache: Path, mirrors: Sequence[Path], embedded: Path) -> list[Place]:
    """List where a file may be on this machine, in the order in which it is looked for."""
    if file.sha256 is None:
        return [Place("embedded", embedded, embedded / file.name)]
    places = [Place("cache", cache, _cache.verified_path(cache, file.sha256))]
    if file.mirror is not None:
        places += [Place("mirror", mirror, mirror / file.mirror) for mirror in mirrors]
    return places


def obstacle(file: SourceFile, path: Path) -> str:
    """Say, without reading the file, why it cannot be the one declared; empty when it may be."""
    try:
        if not path.exists():
            return NOT_THERE
        if not path.is_file():
            return "not a regular file"
        length = path.stat().st_size
    except OSError as error:
        return f"cannot be read ({error.strerror or 'input/output error'})"
    if length > file.at_most:
        return f"{length} bytes, more than the {file.at_most} declared"
    return ""


def in_words(attempts: Iterable[Attempt], *, paths: bool) -> str:
    """Tell attempts in one line, files with the same facts together; with the places' paths or without."""
    facts: dict[str, dict[str, None]] = {}
    for attempt in attempts:
        where = f" {attempt.where}" if paths else ""
        aside = f", kept aside as {attempt.kept}" if paths and attempt.kept else ""
        facts.setdefault(attempt.file, {})[f"{attempt.kind}{where}: {attempt.fact}{aside}"] = None
    files: dict[str, list[str]] = {}
    for file, told in facts.items():
        files.setdefault("; ".join(told), []).append(file)
    return "; ".join(f"{', '.join(names)} ({told})" for told, names in files.items())
