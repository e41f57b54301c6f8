"""Members of a gzip-compressed tar archive, read into memory: nothing is unpacked, so nothing can leave a folder."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

from perfcast import bounds
from perfcast.errors import UserError
from perfcast.unpacking import GZIP, unpacked

_REMEDY = "the file is not the published one, fetch it again"


def read_members(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the content of the plain files `names`, each one folder deep in whatever folder the archive holds.

    Links, devices and everything with another name are passed over unread.
    Raises: UserError when the archive is absent, damaged or too large, or does not hold each name once.
    """
    found: dict[str, list[bytes]] = {name: [] for name in names}
    try:
        with tarfile.open(fileobj=io.BytesIO(_decompressed(path)), mode="r:") as archive:
            for number, member in enumerate(archive):
                if number >= bounds.MEMBERS:
                    raise UserError(f"{path.name} must hold at most {bounds.MEMBERS} members", "it holds more", _REMEDY)
                folder, _, name = member.name.rpartition("/")
                # a sparse file is regular, too, and may claim any size
                plain = member.isreg() and not member.issparse() and _is_plain(folder)
                file = archive.extractfile(member) if name in found and plain else None
                if file is not None:
                    found[name].append(file.read())
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise UserError(f"{path.name} must be a whole tar archive", f"it is damaged ({error})", _REMEDY) from None
    for name, contents in found.items():
        if len(contents) != 1:
            raise UserError(f"{path.name} must hold one file {name}", f"it holds {len(contents)}", _REMEDY)
    return {name: contents[0] for name, contents in found.items()}


def _is_plain(folder: str) -> bool:
    """Whether a member lies in one named folder: neither in the root, nor deeper, nor above."""
    return folder not in {"", ".", ".."} and "/" not in folder and "\\" not in folder


def _decompressed(path: Path) -> bytes:
    try:
        with unpacked(path, GZIP, most=bounds.ARCHIVE, remedy=_REMEDY) as file:
            return file.read()
    except FileNotFoundError:
        raise UserError(f"{path.name} must be there", "there is no such file", "ingest the source again") from None
