"""Files: atomic writes, digests, canonical JSON."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from perfcast import bounds
from perfcast.errors import UserError

TEMPORARY = re.compile(r"^\..+\.[a-z0-9_]{8}(\.\w+)*$")
"""Names that `atomic_path` and `atomic_folder` give until a file or folder is whole."""


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its name when the block ends well.

    A kill at any moment leaves the old file, or nothing, under the final name. The temporary name keeps the
    suffix, because many writers choose their format by it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        with _claimed(temporary):
            yield temporary
            temporary.chmod(0o644)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside `path` that replaces it when the block ends well.

    A folder that was there is moved away whole before it is removed: no kill leaves half of it under the final name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        with _claimed(temporary):
            yield temporary
            temporary.chmod(0o755)
            if path.exists():
                _put_away(path)
            temporary.replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put_away(path: Path) -> None:
    away = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    path.replace(away)
    shutil.rmtree(away)


@contextmanager
def _claimed(temporary: Path) -> Iterator[None]:
    """Show that a living process writes there, for as long as it does: a kill ends an flock, and only that."""
    handle = os.open(temporary, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system has it; then nothing counts as abandoned
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def abandoned(folder: Path, without: Collection[Path] = ()) -> Iterator[Path]:
    """Yield what has a temporary name below a folder and is written by no living process; `without` is not entered."""
    for where, folders, files in os.walk(folder):
        here = Path(where)
        named = [name for name in (*folders, *files) if TEMPORARY.match(name)]
        folders[:] = [name for name in folders if name not in named and here / name not in without]
        yield from (here / name for name in named if _is_abandoned(here / name))


def _is_abandoned(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # it took its final name meanwhile, or is another user's
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, by its path there."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256(path) for path in files}


def first_changed(folder: Path, expected: Mapping[str, str]) -> Path | None:
    """Return the first file below a folder that is not the one of the expected SHA-256, None where all are.

    Raises: OSError when one cannot be read.
    """
    return next((folder / name for name, digest in expected.items() if sha256(folder / name) != digest), None)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, with sorted keys, so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read one JSON file that perfcast wrote. Raises: UserError when it is absent, too large or no JSON."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(bounds.JSON + 1)
    except FileNotFoundError:
        raise UserError("a file that is read must exist", f"there is no {path}", "run what makes it first") from None
    if len(content) > bounds.JSON:
        raise UserError(f"{path} must have at most {bounds.JSON} bytes", "it is larger", "make it again")
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} must be JSON, as it was saved", str(error)[:200], "make it again") from None


def read_object(path: Path, *keys: str) -> dict[str, Any]:
    """Read one JSON object that perfcast wrote. Raises: UserError when it is none, or lacks one of the keys."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError(f"{path} must hold one JSON object", f"it holds {type(value).__name__}", "make it again")
    for key in keys:
        if key not in value:
            raise UserError(f"{path} must have the key {key!r}", "it has none of that name", "make it again")
    return value
