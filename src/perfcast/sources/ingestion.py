"""Ingestion of one source: byte-exact files and a manifest, or a manifest that says why they are missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rich.filesize import decimal

from perfcast import plugins
from perfcast.sources.download import DownloadLimits
from perfcast.sources.file_checks import check_csv, check_machine_description
from perfcast.sources.locations import NOT_FOUND, FailedAttempt, format_attempts
from perfcast.sources.packed_mirror import unpack_mirrors
from perfcast.sources.source_spec import MANIFEST, Snapshot, SourceSpec
from perfcast.sources.staging import FileProgress, FileStager
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, write_json
from perfcast.utils.result_digests import record_digests

_STAGING = ".staging"


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

    `status` is present or missing, `attempts` are the origins that failed, `summary` is one line for the user.
    """

    source: str
    status: str
    snapshot: str | None
    files: tuple[IngestedFile, ...]
    attempts: tuple[FailedAttempt, ...]
    reason: str
    remedy: str
    summary: str


def ingest_source(
    spec: SourceSpec,
    out: Path,
    *,
    cache: Path,
    mirrors: Sequence[Path],
    embedded: Path,
    network: bool,
    strict: bool = False,
    progress: FileProgress | None = None,
    limits: DownloadLimits | None = None,
) -> IngestResult:
    """Write the files of one source and its manifest to the folder `out`, from the first origin that provides them.

    The order is cache, mirror folders, archives in them, the last ingestion in `out`, published address (only if
    `network`). The checksum of every file is verified before it is used. Then the structure of the files is checked
    (`check_structure`).
    Raises: UserError when the files fail that check, when `strict` and a file is missing, or when a source that was
    present would become missing.
    """
    if spec.module:
        plugins.load("sources", spec.module)  # an unknown name is an error even where the files are missing
    with atomic_folder(out) as folder:
        staging = folder / _STAGING
        staging.mkdir()
        show = progress or _ignore_progress
        archives = unpack_mirrors(spec, cache, mirrors, staging)
        mirrors = [*mirrors, *archives]
        stager = FileStager(staging, cache, mirrors, embedded, out, show, limits or DownloadLimits())
        snapshot = _choose_snapshot(spec, stager, network=network)
        if snapshot is None:
            result = _describe_missing(spec, stager.attempts, network=network)
            if strict:
                fact = format_attempts(stager.attempts, with_paths=True)
                raise UserError(f"source {spec.name!r} must be there", fact, result.remedy)
            _keep_earlier(spec, out, stager.attempts)
        else:
            labels = {f"mirror {unpacked}": f"archive {archive}" for unpacked, archive in archives.items()}
            result = _describe_present(spec, snapshot, stager, labels)
            _move_files(snapshot, stager, folder)
            check_structure(spec, folder)
        shutil.rmtree(staging)
        write_json(folder / MANIFEST, _build_manifest(spec, result))
        record_digests(folder)
    return result


def _keep_earlier(spec: SourceSpec, out: Path, attempts: Sequence[FailedAttempt]) -> None:
    """Refuse to replace the files of an earlier ingestion by a manifest of a missing source."""
    names = dict.fromkeys(file.name for snapshot in spec.snapshots for file in snapshot.files)
    ingested = [name for name in names if (out / name).is_file()]
    if ingested:
        fact = f"{ingested[0]} of the last ingestion is in {out} and no file now fits: "
        fact += format_attempts(attempts, with_paths=True)
        remedy = f"bring the mirror or the network back, or delete {out} to go on without the source"
        raise UserError(f"source {spec.name!r} must stay present", fact, remedy)


def check_structure(spec: SourceSpec, folder: Path) -> None:
    """Check the columns of CSV files, machine descriptions (JSON), and what the module of the source knows.

    Raises: UserError when a file is absent, damaged or of another structure.
    """
    for name, columns in spec.columns.items():
        check_csv(folder / name, columns, encoding_by_row=spec.dump, max_bytes=size_limits.DUMP if spec.dump else None)
    for file in spec.snapshots[0].files:
        if file.name.endswith(".json"):
            check_machine_description(folder / file.name, spec.remedy)
    if spec.module:
        plugins.load("sources", spec.module).check(folder)


def _choose_snapshot(spec: SourceSpec, stager: FileStager, *, network: bool) -> Snapshot | None:
    """Return the first snapshot that is whole on this machine, else the first that downloads complete."""
    for snapshot in spec.snapshots:
        if all(stager.stage_local(file) for file in snapshot.files):
            return snapshot
    for snapshot in spec.snapshots if network else ():
        if all(stager.stage_local(file) or stager.stage_download(file) for file in snapshot.files):
            return snapshot
    return None


def _move_files(snapshot: Snapshot, stager: FileStager, folder: Path) -> None:
    for file in snapshot.files:
        target = folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        stager.staged[file].path.replace(target)


def _describe_present(
    spec: SourceSpec, snapshot: Snapshot, stager: FileStager, labels: Mapping[str, str]
) -> IngestResult:
    staged = [(file.name, stager.staged[file]) for file in snapshot.files]
    files = tuple(
        IngestedFile(name, copy.sha256, copy.bytes, labels.get(copy.origin, copy.origin)) for name, copy in staged
    )
    size = decimal(sum(file.bytes for file in files))
    origins = ", ".join(dict.fromkeys(file.origin for file in files))
    label = f"{spec.name} (snapshot {snapshot.name})" if snapshot.name else spec.name
    summary = f"{label}: {len(files)} file{'s' if len(files) > 1 else ''}, {size}, from {origins}"
    rejected = [attempt for attempt in stager.attempts if attempt.reason != NOT_FOUND]
    if rejected:
        summary += f"; rejected: {format_attempts(rejected, with_paths=True)}"
    return IngestResult(spec.name, "present", snapshot.name, files, tuple(stager.attempts), "", "", summary)


def _describe_missing(spec: SourceSpec, attempts: Sequence[FailedAttempt], *, network: bool) -> IngestResult:
    offline = "" if network or spec.embedded else ", the network is switched off"
    reason = format_attempts(attempts, with_paths=False) + offline
    remedy = spec.remedy or _default_remedy(spec, network=network)
    summary = f"{spec.name} is missing: {format_attempts(attempts, with_paths=True)}{offline}. Remedy: {remedy}"
    return IngestResult(spec.name, "missing", None, (), tuple(attempts), reason, remedy, summary)


def _default_remedy(spec: SourceSpec, *, network: bool) -> str:
    paths = [file.mirror for snapshot in spec.snapshots for file in snapshot.files if file.mirror]
    folder = f"set PERFCAST_MIRROR to the folder with {PurePosixPath(paths[0]).parts[0]}/, or " if paths else ""
    return f"{folder}{'try again with a connection' if network else 'set network: true in params.yaml'}"


def _build_manifest(spec: SourceSpec, result: IngestResult) -> dict[str, Any]:
    """Return the manifest that later stages and the report read; it contains no times, paths or origins."""
    return {
        "source": spec.name,
        "title": spec.title,
        "status": result.status,
        "snapshot": result.snapshot,
        "files": [{"name": file.name, "sha256": file.sha256, "bytes": file.bytes} for file in result.files],
        "license": spec.license,
        "terms": spec.terms,
        "citation": spec.citation,
        "homepage": spec.homepage,
        "retrieved": spec.retrieved,
        "reason": result.reason,
        "remedy": result.remedy,
    }


def _ignore_progress(name: str, done: int, total: int | None) -> None:
    """Show nothing."""


class DownloadLines:
    """Progress of downloads above 1 MB as lines of text: one per tenth, or per 5 MB if the size is unknown."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._last_step: dict[str, int] = {}

    def __call__(self, name: str, done: int, total: int | None) -> None:
        """Show a line where a step is reached."""
        step = int(10 * done / total) if total else done // 5_000_000
        if self._last_step.get(name) != step and (total is None or total > 1_000_000):
            self._last_step[name] = step
            of_total = f" of {total / 1e6:.1f}" if total else ""
            self._show(f"{name}: {done / 1e6:.1f}{of_total} MB")
