"""Ingest one source: byte-exact files and a manifest, or a manifest that says what was left out."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rich.filesize import decimal

from perfcast import plugins
from perfcast.errors import UserError
from perfcast.io import atomic_folder, write_json
from perfcast.sources._fetch import Limits
from perfcast.sources._places import NOT_THERE, Attempt, in_words
from perfcast.sources._search import Progress, Search
from perfcast.sources.base import MANIFEST, Snapshot, SourceSpec

_STAGING = ".staging"


@dataclass(frozen=True)
class IngestedFile:
    """One ingested file and the origin its bytes came from."""

    name: str
    sha256: str
    bytes: int
    origin: str


@dataclass(frozen=True)
class IngestResult:
    """What became of one source.

    `status` is present or missing, `attempts` are the origins that did not serve, `line` tells it all to a reader.
    """

    source: str
    status: str
    snapshot: str | None
    files: tuple[IngestedFile, ...]
    attempts: tuple[Attempt, ...]
    reason: str
    remedy: str
    line: str


def ingest(
    spec: SourceSpec,
    out: Path,
    *,
    cache: Path,
    mirrors: Sequence[Path],
    embedded: Path,
    network: bool,
    strict: bool = False,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> IngestResult:
    """Write the files of one source and its manifest to the folder `out`, from the first origin that has them.

    The order is cache, mirror folders, published address (only if `network`). Every file is checked by sha256 before
    it is used, and the whole by the structural check of the source's module.
    Raises: UserError when the files fail that check, or when `strict` and a file cannot be had.
    """
    check = plugins.load("sources", spec.module).check
    with atomic_folder(out) as folder:
        staging = folder / _STAGING
        staging.mkdir()
        search = Search(staging, cache, mirrors, embedded, progress or _silent, limits or Limits())
        snapshot = _choose(spec, search, network=network)
        if snapshot is None:
            result = _missing(spec, search.attempts, network=network)
            if strict:
                raise UserError(
                    f"source {spec.name!r} must be there", in_words(search.attempts, paths=True), result.remedy
                )
        else:
            result = _present(spec, snapshot, search)
            _place(snapshot, search, folder)
            check(folder)
        shutil.rmtree(staging)
        write_json(folder / MANIFEST, _manifest(spec, result))
    return result


def _choose(spec: SourceSpec, search: Search, *, network: bool) -> Snapshot | None:
    """Return the first snapshot that is whole: on this machine, else with what can be downloaded."""
    for snapshot in spec.snapshots:
        if all(search.local(file) for file in snapshot.files):
            return snapshot
    for snapshot in spec.snapshots if network else ():
        if all(search.local(file) or search.remote(file) for file in snapshot.files):
            return snapshot
    return None


def _place(snapshot: Snapshot, search: Search, folder: Path) -> None:
    for file in snapshot.files:
        target = folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        search.found[file].path.replace(target)


def _present(spec: SourceSpec, snapshot: Snapshot, search: Search) -> IngestResult:
    staged = [(file.name, search.found[file]) for file in snapshot.files]
    files = tuple(IngestedFile(name, found.sha256, found.bytes, found.origin) for name, found in staged)
    size = decimal(sum(file.bytes for file in files))
    origins = ", ".join(dict.fromkeys(file.origin for file in files))
    which = f" (snapshot {snapshot.name})" if snapshot.name else ""
    line = f"{spec.name}{which}: {len(files)} file{'s' if len(files) > 1 else ''}, {size}, from {origins}"
    refused = [attempt for attempt in search.attempts if attempt.fact != NOT_THERE]
    if refused:
        line += f"; refused on the way: {in_words(refused, paths=True)}"
    return IngestResult(spec.name, "present", snapshot.name, files, tuple(search.attempts), "", "", line)


def _missing(spec: SourceSpec, attempts: Sequence[Attempt], *, network: bool) -> IngestResult:
    offline = "" if network or spec.embedded else ", the network is switched off"
    reason = in_words(attempts, paths=False) + offline
    remedy = spec.remedy or _default_remedy(spec, network=network)
    line = f"{spec.name} is left out: {in_words(attempts, paths=True)}{offline}. To get it: {remedy}"
    return IngestResult(spec.name, "missing", None, (), tuple(attempts), reason, remedy, line)


def _default_remedy(spec: SourceSpec, *, network: bool) -> str:
    mirrored = [file.mirror for snapshot in spec.snapshots for file in snapshot.files if file.mirror]
    folder = (
        f"name the folder that holds {PurePosixPath(mirrored[0]).parts[0]}/ in PERFCAST_MIRROR, or " if mirrored else ""
    )
    return f"{folder}{'try again with a connection' if network else 'allow the network'}"


def _manifest(spec: SourceSpec, result: IngestResult) -> dict[str, Any]:
    """Return what the later stages and the report may know: no times, no paths, no origin."""
    return {
        "source": spec.name,
        "title": spec.title,
        "status": result.status,
        "snapshot": result.snapshot,
        "files": [{"name": file.name, "sha256": file.sha256, "bytes": file.bytes} for file in result.files],
        "licence": spec.licence,
        "terms": spec.terms,
        "citation": spec.citation,
        "homepage": spec.homepage,
        "retrieved": spec.retrieved,
        "reason": result.reason,
        "remedy": result.remedy,
    }


def _silent(name: str, done: int, total: int | None) -> None:
    """Show no progress."""
