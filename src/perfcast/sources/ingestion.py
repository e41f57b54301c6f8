"""Ingestion of one source: byte-exact files and a manifest, or a manifest that says why they are missing."""

from __future__ import annotations

import errno
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from perfcast.sources.download import DownloadError, DownloadLimits, download_file
from perfcast.sources.locations import (
    NOT_FOUND,
    FailedAttempt,
    FileLocation,
    SourcePlaces,
    cached_path,
    find_obstacle,
    format_attempts,
    list_locations,
    rejections,
)
from perfcast.sources.source_spec import MANIFEST, SourceFile, SourceSpec
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, atomic_path, write_json
from perfcast.utils.result_digests import record_digests

_CHUNK_BYTES = 1 << 20
_FULL_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class IngestedFile:
    """One ingested file and the origin of its bytes."""

    name: str
    sha256: str
    bytes: int
    origin: str


@dataclass(frozen=True)
class IngestResult:
    """Result of the ingestion of one source.

    `status` is present or missing, `reason` and `remedy` those of a missing one, `summary` is one line for the user.
    """

    status: str
    files: tuple[IngestedFile, ...]
    reason: str
    remedy: str
    summary: str


@dataclass
class _Search:
    """Search for the files of one source; verified copies go to the folder `staging`."""

    spec: SourceSpec
    staging: Path
    places: SourcePlaces
    limits: DownloadLimits
    attempts: list[FailedAttempt] = field(default_factory=list)
    staged: dict[SourceFile, tuple[Path, IngestedFile]] = field(default_factory=dict)
    missing: set[SourceFile] = field(default_factory=set)
    unreachable: bool = False

    def find_files(self, *, network: bool) -> list[SourceFile] | None:
        """Return the files of the first edition that is whole on this machine, else of one that downloads complete."""
        for files in self.spec.editions:
            if all(self._find(file) for file in files):
                return files
        for files in self.spec.editions if network else ():
            if all(self._find(file) or self._download(file) for file in files):
                return files
        return None

    def _find(self, file: SourceFile) -> bool:
        """Copy a file of this machine and return whether it was there; every file is searched once."""
        if file in self.staged or file in self.missing:
            return file in self.staged
        for location in list_locations(file, self.places):
            if self._take(file, location, str(location.folder)):
                return True
        self.missing.add(file)
        return False

    def _download(self, file: SourceFile) -> bool:
        """Download a file to the cache, copy it, and return whether this succeeded.

        After a failure to connect, the remaining files are not tried.
        """
        if file.url is None or file.sha256 is None:
            return False
        path = cached_path(self.places.cache, file.sha256)
        reason = "not tried, because there is no connection"
        if not self.unreachable:
            try:
                download_file(file, path, self.limits)
                return self._take(file, FileLocation("address", self.places.cache, path), file.url)
            except DownloadError as error:
                self.unreachable = error.unreachable
                reason = str(error)
        self.attempts.append(FailedAttempt(file.name, "address", file.url, reason))
        return False

    def _take(self, file: SourceFile, location: FileLocation, origin: str) -> bool:
        """Copy a file and verify the copy, which no other process changes; return whether it is the declared one."""
        copy = self.staging / str(len(self.staged))
        reason = find_obstacle(file, location) or self._copy(file, location, copy)
        if reason:
            self.attempts.append(FailedAttempt(file.name, location.kind, origin, reason))
            return False
        with copy.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if file.sha256 not in (None, digest):
            reason = f"wrong checksum, the sha256 is {digest[:12]}… and not {str(file.sha256)[:12]}…"
            self.attempts.append(FailedAttempt(file.name, location.kind, origin, reason))
            return False
        ingested = IngestedFile(file.name, digest, copy.stat().st_size, f"{location.kind} {origin}")
        self.staged[file] = (copy, ingested)
        if location.kind == "mirror":  # a mirror that is gone later costs no data
            with suppress(OSError), atomic_path(cached_path(self.places.cache, digest)) as temporary:
                shutil.copyfile(copy, temporary)
        return True

    def _copy(self, file: SourceFile, location: FileLocation, target: Path) -> str:
        """Copy at most the declared bytes of a file; return why that failed, "" if it did not."""
        try:
            with location.path.open("rb") as source, target.open("wb") as copy:
                left = file.max_bytes
                while chunk := source.read(min(_CHUNK_BYTES, left)):
                    copy.write(chunk)
                    left -= len(chunk)
        except FileNotFoundError:
            return NOT_FOUND
        except OSError as error:
            if error.errno in _FULL_DISK_ERRORS:  # the disk of the copy is full; the source is not missing
                raise
            return f"cannot be copied ({error.strerror or 'input/output error'})"
        return ""


def ingest_source(
    spec: SourceSpec,
    out: Path,
    places: SourcePlaces,
    *,
    network: bool,
    strict: bool = False,
    limits: DownloadLimits = DownloadLimits(),  # noqa: B008
) -> IngestResult:
    """Write the files of one source and its manifest to the folder `out`, from the first origin that provides them.

    The order is the packed table of the repository, then for official files cache, mirror folders, the last ingestion
    in `out`, published address (only if `network`). A file is used after its checksum.
    Raises: UserError when `strict` and a file is missing, or when a source that was present would become missing.
    """
    with atomic_folder(out) as folder:
        with tempfile.TemporaryDirectory(dir=folder) as staging:
            search = _Search(spec, Path(staging), replace(places, earlier=out), limits)
            files = search.find_files(network=network)
            for file in files or ():
                target = folder / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                search.staged[file][0].replace(target)
        if files is None:
            result = _describe_missing(spec, search.attempts, network=network)
            _refuse_loss(spec, out, search.attempts, result.remedy, strict=strict)
        else:
            result = _describe_present(spec, files, search)
        write_json(folder / MANIFEST, _build_manifest(spec, result))
        record_digests(folder)
    return result


def _refuse_loss(spec: SourceSpec, out: Path, attempts: Sequence[FailedAttempt], remedy: str, *, strict: bool) -> None:
    """Refuse a missing source where it must be there, and where its manifest would replace files. Raises: UserError."""
    if strict:
        raise UserError(f"source {spec.name!r} must be there", _explain_absence(spec, attempts), remedy)
    for file in (file for files in spec.editions for file in files):
        if (out / file.name).is_file():
            attempted = format_attempts(attempts, with_paths=True)
            fact = f"{file.name} of the last ingestion is in {out} and no file now fits: {attempted}"
            remedy = f"bring the mirror or the network back, or delete {out} to go on without the source"
            raise UserError(f"source {spec.name!r} must stay present", fact, remedy)


def _describe_present(spec: SourceSpec, wanted: Sequence[SourceFile], search: _Search) -> IngestResult:
    files = tuple(search.staged[file][1] for file in wanted)
    size = decimal(sum(file.bytes for file in files))
    origins = ", ".join(dict.fromkeys(file.origin for file in files))
    summary = f"{spec.name}: {len(files)} file{'s' if len(files) > 1 else ''}, {size}, from {origins}"
    if rejected := rejections(search.attempts):
        summary += f"; rejected: {format_attempts(rejected, with_paths=True)}"
    return IngestResult("present", files, "", "", summary)


def _describe_missing(spec: SourceSpec, attempts: Sequence[FailedAttempt], *, network: bool) -> IngestResult:
    reason = _explain_absence(spec, attempts)
    remedy = spec.remedy or _find_remedy(spec, network=network)
    return IngestResult("missing", (), reason, remedy, f"{spec.name} is missing: {reason}. Remedy: {remedy}")


def _explain_absence(spec: SourceSpec, attempts: Sequence[FailedAttempt]) -> str:
    """Return in a few words why a source is missing; `perfcast sources` names every place."""
    count = len(spec.editions[-1])
    absent = f"its {count} files are" if count > 1 else "its file is"
    fact = f"{absent} not here"
    if rejected := rejections(attempts):
        fact += f"; {rejected[0].reason}"
    return fact


def _find_remedy(spec: SourceSpec, *, network: bool) -> str:
    """Return what a user can do about a missing source."""
    if spec.packed:
        return "restore data/embedded of the repository"
    first = "connect" if network else "set network: true in params.yaml"
    return f"{first}, or set PERFCAST_MIRROR"


def _build_manifest(spec: SourceSpec, result: IngestResult) -> dict[str, Any]:
    """Return the manifest that later stages and the report read; it contains no times, paths or origins."""
    about = {name: getattr(spec, name) for name in ("title", "license", "terms", "citation", "homepage", "retrieved")}
    return {
        "source": spec.name,
        **about,
        "status": result.status,
        "files": [{"name": file.name, "sha256": file.sha256, "bytes": file.bytes} for file in result.files],
        "reason": result.reason,
        "remedy": result.remedy,
    }
