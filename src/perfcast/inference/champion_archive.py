"""Champion as one file: a zip archive of its folder with a manifest, the same bytes for the same folder.

Nothing in it executes when it is read. Published scores that may not be passed on are left out unless they are wanted.
"""

from __future__ import annotations

import json
import re
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from perfcast import __version__
from perfcast.schema.schema_version import SCHEMA_KEY, SCHEMA_VERSION, check_schema_version
from perfcast.schema.table import Role, Table
from perfcast.schema.table_files import read_table, write_table
from perfcast.sources.bounded_files import check_zip
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, file_digests, sha256, write_json
from perfcast.utils.result_digests import FOLDER_RECORD

if TYPE_CHECKING:
    from perfcast.inference.champion import Champion

MANIFEST = "manifest.json"
FORMAT = "perfcast champion"
WITHOUT_SCORES = "without_scores"
"""Key of about.json: what replaces the published scores; see `LeftOutScores`."""
_WHAT, _AGAIN = "a champion's file", "export it again, or fetch it again"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_SUFFIXES = (".json", ".npy", ".npz", ".parquet", ".txt")
"""Formats that execute nothing when they are read."""
_OPEN_LICENSES = ("Apache-2.0", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "MIT", "MIT License")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MEASURED = "measured.parquet"
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RecursionError),
    *(AttributeError, KeyError, TypeError, ValueError, OverflowError),
)
"""Exceptions of the readers of zip archives and of manifests for bytes that they did not write."""


@dataclass(frozen=True)
class SourceTerms:
    """Terms of a source of published results, as its conf states them."""

    name: str
    title: str
    license: str
    terms: str
    citation: str

    @property
    def shareable(self) -> bool:
        """Return whether its license lets everybody pass its scores on."""
        return self.license in _OPEN_LICENSES


@dataclass(frozen=True)
class LeftOutScores:
    """Facts that replace the published scores of a champion: typical rows and measured targets by task."""

    sources: tuple[str, ...]
    typical_rows: Mapping[str, int]
    targets: Mapping[str, Sequence[str]]

    @property
    def note(self) -> str:
        """The note of every answer."""
        return f"scores of measured machines are left out by the terms of {', '.join(self.sources)}"


def list_left_out(champion: Champion, terms: Sequence[SourceTerms]) -> LeftOutScores | None:
    """Return what replaces the published scores of a champion whose sources do not let everybody pass them on.

    Args: `terms` are those of the sources of its scores. Raises: UserError when the predictor consists of the scores.
    """
    closed = tuple(each.title for each in terms if not each.shareable)
    if not closed:
        return None
    if champion.predictor.stores_scores:
        fact = f"{champion.name} stores the scores of {', '.join(closed)}"
        raise UserError("a shared champion must hold no published scores", fact, "choose another, or --with-scores")
    return LeftOutScores(closed, champion.typical_rows, {task: champion.targets_of(task) for task in champion.tasks})


def pack_champion(folder: Path, out: Path, left_out: LeftOutScores | None, terms: Sequence[SourceTerms]) -> None:
    """Write the folder of a champion as one file, without its published scores where `left_out` replaces them.

    Raises: UserError when the folder holds a file of another format.
    """
    with tempfile.TemporaryDirectory() as temporary:
        sources = {name: folder / name for name in file_digests(folder) if _is_exported(name)}
        if left_out is not None:
            sources |= _leave_out_scores(folder, sources, Path(temporary), left_out)
        if wrong := [name for name in sources if not _is_allowed(name)]:
            raise UserError("a champion must have files of known formats", f"{wrong[0]} is another", "make it again")
        manifest = {
            "format": FORMAT,
            SCHEMA_KEY: SCHEMA_VERSION,
            "perfcast": __version__,
            "terms": [asdict(each) for each in terms],
            "scores": left_out is None,
            "files": {name: {"sha256": sha256(path), "bytes": path.stat().st_size} for name, path in sources.items()},
        }
        with atomic_path(out) as written, zipfile.ZipFile(written, "w") as archive:
            content = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False).encode()
            _write_member(archive, MANIFEST, content)
            for name in sorted(sources):
                _write_member(archive, name, sources[name].read_bytes())


def _leave_out_scores(
    folder: Path, sources: Mapping[str, Path], temporary: Path, left_out: LeftOutScores
) -> dict[str, Path]:
    """Write the measured results without scores, and the description of the champion, to a temporary folder."""
    (name,) = [name for name in sources if PurePosixPath(name).name == _MEASURED]
    table = read_table(sources[name])
    targets = dict.fromkeys(table.select(role=Role.TARGET), np.nan)
    scoreless = Table(table.dataset, table.frame.assign(**targets), table.columns, table.facts)
    write_table(scoreless, temporary / _MEASURED)
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    write_json(temporary / "about.json", {**about, WITHOUT_SCORES: asdict(left_out)})
    return {name: temporary / _MEASURED, "about.json": temporary / "about.json"}


def _write_member(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type, member.create_system, member.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    archive.writestr(member, content, compresslevel=6)


@contextmanager
def unpack_champion(path: Path) -> Iterator[Path]:
    """Yield the folder of an exported champion, unpacked for this block alone: no other process reads or trusts it.

    Raises: UserError when the file is damaged, too large, of another release, or has members that it must not have.
    """
    if path.stat().st_size > size_limits.CHAMPION:
        raise UserError(f"{path} must have at most {size_limits.CHAMPION} bytes", "it is larger", _AGAIN)
    check_zip(path, _WHAT, lambda name: name == MANIFEST, size_limits.CHAMPION, remedy=_AGAIN, name=str(path))
    with tempfile.TemporaryDirectory(prefix="perfcast-") as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                for name, expected in _read_manifest(archive, path).items():
                    _unpack_member(archive, name, expected, Path(folder, name))
        except UserError:
            raise
        except _DAMAGE as error:
            raise UserError(f"{path} must be {_WHAT}", f"it is damaged ({type(error).__name__})", _AGAIN) from None
        yield Path(folder)


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, dict[str, Any]]:
    """Return the expected digest and size of every member, which are those of the manifest and no others."""
    member = archive.getinfo(MANIFEST)
    if member.file_size > size_limits.JSON:
        raise UserError(f"{path} must be {_WHAT}", "its manifest is too large", _AGAIN)
    try:
        manifest = json.loads(archive.read(member))
    except ValueError:
        raise UserError(f"{path} must be {_WHAT}", "its manifest is not JSON", _AGAIN) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UserError(f"{path} must be {_WHAT}", "its manifest is of another kind", _AGAIN)
    check_schema_version(manifest, path)
    files: dict[str, dict[str, Any]] = manifest["files"]
    names = [info.filename for info in archive.infolist()]
    if sorted(names) != sorted([MANIFEST, *files]):
        raise UserError(f"{path} must have the members of its manifest", "it has others", _AGAIN)
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not _is_allowed(info.filename) or kind not in (0, stat.S_IFREG):
            raise UserError(f"{path} must have plain files of known formats", f"{info.filename!r} is none", _AGAIN)
    return files


def _unpack_member(archive: zipfile.ZipFile, name: str, expected: Mapping[str, Any], target: Path) -> None:
    size = int(expected["bytes"])
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(name) as member:
        content = member.read(size + 1)
    target.write_bytes(content)
    if len(content) != size or sha256(target) != expected["sha256"]:
        raise UserError(f"{archive.filename} must be as it was exported", f"{name} was changed", _AGAIN)


def _is_exported(name: str) -> bool:
    """Return whether a file of a champion's folder is part of it; the archive has digests of its own."""
    return not PurePosixPath(name).name.startswith((".", FOLDER_RECORD))


def _is_allowed(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and PurePosixPath(name).suffix in _SUFFIXES
