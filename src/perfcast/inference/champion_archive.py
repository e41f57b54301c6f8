"""Champion as one file: a zip archive of its folder with terms and digests, the same bytes for the same folder.

Nothing in it executes when it is read. It has the published results that the champion learned from.
"""

from __future__ import annotations

import errno
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from perfcast import __version__
from perfcast.sources.bounded_files import check_zip
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, file_digests, read_json, temporary_folder, write_json
from perfcast.utils.packaged_project import CHAMPIONS
from perfcast.utils.result_digests import FOLDER_RECORD, read_record, record_digests, verify_folder

BASE = "base"
"""Folder in that of a champion with the one that it rests on."""
TERMS = "terms.json"
"""Member with the terms of the sources of its results."""
_AGAIN = "export it again, or fetch it again"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_FILES = ("about.json", FOLDER_RECORD, TERMS)
_FOLDERS = (BASE, "intervals", "model", "reference_data")
_SUFFIXES = (".json", ".npy", ".npz", ".parquet", ".txt")
"""Formats that execute nothing when they are read."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def find_base(folder: Path, bridge: Mapping[str, Any]) -> Path:
    """Return the folder of the champion that another one rests on: inside its folder; in the package beside it."""
    return folder.parent / bridge["dataset"] if folder.parent == CHAMPIONS else folder / BASE


def has_base(folder: Path, base: Path) -> bool:
    """Return whether the champion of a folder rests on a copy of that of another folder."""
    records = [each / FOLDER_RECORD for each in (find_base(folder, {"dataset": base.name}), base)]
    return all(record.is_file() for record in records) and records[0].read_bytes() == records[1].read_bytes()


def pack_champion(folder: Path, out: Path, terms: Sequence[Mapping[str, str]]) -> None:
    """Write the folder of a champion as one file, with the terms of its sources.

    Raises: UserError when the folder holds a file that no champion has, or more than `unpack_champion` reads.
    """
    with temporary_folder() as temporary:
        copy = temporary / "copy"
        # the archive has digests and terms of its own
        ignore = shutil.ignore_patterns(".*", f"{FOLDER_RECORD}*", TERMS)
        shutil.copytree(folder, copy, ignore=ignore)
        if bridge := read_json(folder / "about.json").get("bridge"):
            shutil.copytree(find_base(folder, bridge), copy / BASE, ignore=ignore, dirs_exist_ok=True)
        if other := [name for name in file_digests(copy) if not _is_known(name)]:
            raise UserError("a champion must have files of known formats", f"{other[0]} is another", "make it again")
        write_json(copy / TERMS, {"perfcast": __version__, "terms": terms})
        record_digests(copy)
        size = sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())
        if size > size_limits.CHAMPION:
            requirement = f"an exported champion must have at most {size_limits.CHAMPION} bytes"
            raise UserError(requirement, f"{folder} has {size}", "copy the folder instead")
        with atomic_path(out) as written, zipfile.ZipFile(written, "w") as archive:
            for name in sorted(file_digests(copy)):
                member = zipfile.ZipInfo(name, _EPOCH)
                member.compress_type, member.create_system, member.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
                archive.writestr(member, (copy / name).read_bytes(), compresslevel=9)


@contextmanager
def unpack_champion(path: Path) -> Iterator[Path]:
    """Yield the folder of an exported champion, unpacked for this block alone: no other process reads or trusts it.

    Nothing is unpacked before every member is one of a champion and in its record.

    Raises: UserError when the file is damaged, too large, or has members that it must not have.
    """
    check_zip(path, "a champion's file", FOLDER_RECORD.__eq__, size_limits.CHAMPION, remedy=_AGAIN, name=str(path))
    with temporary_folder() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    if not _is_known(info.filename) or stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                        raise UserError("members", f"{info.filename!r} is no plain file of a champion")
                record = read_record(Path(archive.extract(FOLDER_RECORD, folder)))
                if sorted(archive.namelist()) != sorted([FOLDER_RECORD, *record]):
                    raise UserError("members", "its record lists others")
                archive.extractall(folder)
            verify_folder(folder)
        except Exception as error:  # any error that a library raises for bytes that it did not write
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise  # the file is right
            fact = error.fact if isinstance(error, UserError) else f"it is damaged ({type(error).__name__})"
            raise UserError(f"{path} must be as it was exported", fact, _AGAIN) from None
        yield folder


def _is_known(name: str) -> bool:
    """Return whether a champion has such a file: by its place, its characters and its format."""
    if name in _FILES:
        return True
    path = PurePosixPath(name)
    return path.parts[0] in _FOLDERS and path.suffix in _SUFFIXES and _NAME.fullmatch(name) is not None
