"""The local cache: verified bytes by digest, unfinished downloads, and refused files kept aside.

<cache>/sha256/<first two digits>/<sha256>     verified
<cache>/partial/<sha256>.part                  unfinished, with .json (address, validator) and .lock beside it
<cache>/refused/<name>.<first 12 digits>       bytes whose checksum was wrong, never used
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from perfcast.errors import UserError
from perfcast.io import atomic_path


def verified_path(cache: Path, sha256: str) -> Path:
    """Return where the bytes of that digest are, or would be."""
    return cache / "sha256" / sha256[:2] / sha256


def set_aside(cache: Path, name: str, found_sha256: str, bad: Path) -> Path:
    """Move bytes with a wrong checksum out of the way and return where they are kept."""
    kept = cache / "refused" / f"{PurePosixPath(name).name}.{found_sha256[:12]}"
    with writable(kept.parent):
        move(bad, kept)
    return kept


def move(origin: Path, target: Path) -> None:
    """Move a file within the cache or into it from another file system, atomically under the final name."""
    try:
        origin.replace(target)
    except OSError:
        with atomic_path(target) as temporary:
            shutil.copyfile(origin, temporary)
        origin.unlink()


@contextmanager
def unfinished(cache: Path, sha256: str) -> Iterator[Path]:
    """Give the path of a download in progress, held by this process alone."""
    folder = cache / "partial"
    with writable(folder), (folder / f"{sha256}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder / f"{sha256}.part"


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Make a folder of the cache and tell in one line when it, or the disk, takes no more bytes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(
            "the cache must be writable", f"{folder}: {error.strerror or error}", "free space or name another cache"
        )
