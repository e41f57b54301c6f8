"""Files: atomic writes, digests, canonical JSON."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

TEMPORARY = re.compile(r"^\..+\.[a-z0-9_]{8}(\.\w+)*$")
"""Temporary names that `atomic_path` and `atomic_folder` use."""


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block ends without an exception.

    A kill at any moment leaves the old file, or none, under the final name. The temporary name keeps the suffix,
    because many writers choose their format by it. A link stays one: the file that it names is replaced. The mode is
    that of the old file, else that of the process's umask.

    Raises: UserError when `path` is something else than a file, such as a folder or a device.
    """
    path = _resolve(Path(path))
    old = path.stat() if path.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        kind = "a folder" if stat.S_ISDIR(old.st_mode) else "a device, pipe or socket"
        raise UserError("the file to write must be a regular one", f"{path} is {kind}", "name another")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.stem}.{secrets.token_hex(4)}{path.suffix}"
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        with _lock_temporary(temporary):
            yield temporary
            if old is not None:
                temporary.chmod(stat.S_IMODE(old.st_mode))
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class _OnlyTriedError(Exception):
    """Ends the block of an `atomic_path` that shall not write."""


def check_writable(path: Path) -> None:
    """Raise what `atomic_path` would, ahead of work that takes long before it is written."""
    with suppress(_OnlyTriedError), atomic_path(path):
        raise _OnlyTriedError


def _resolve(path: Path) -> Path:
    """Return the path that a link names in the end; other paths stay as they are."""
    if not path.is_symlink():
        return path
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise UserError("the file to write must be a regular one", f"{path} is a link to itself") from error


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `path` when the block ends without an exception.

    An older folder is renamed before it is removed, so that a kill never leaves half of it under the final name. A link
    stays one: the folder that it names is replaced.

    Raises: UserError when `path` is a file.
    """
    path = _resolve(Path(path))
    if path.exists() and not path.is_dir():
        raise UserError("the folder to write must be one", f"{path} is a file", "name another")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        with _lock_temporary(temporary):
            yield temporary
            temporary.chmod(0o755)
            if path.exists():
                away = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
                path.replace(away)
                shutil.rmtree(away)
            temporary.replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


_OWN = "perfcast-temporary-"
_SETTLED = 60.0
"""Beginning of the names of temporary folders, and seconds after which one without a lock has lost its process."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder among the temporary files of the machine, which goes with the block.

    Those of killed commands go first.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_OWN}*"):
        with suppress(OSError):  # another command removes it
            facts = left.lstat()
            is_own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
            if is_own and time.time() - facts.st_mtime > _SETTLED and _is_abandoned(left):
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_OWN) as name, _lock_temporary(Path(name)):
        yield Path(name)


@contextmanager
def _lock_temporary(temporary: Path) -> Iterator[None]:
    """Hold an flock on a temporary path while it is written: a kill releases it."""
    handle = os.open(temporary, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no locks: nothing counts as abandoned there
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def abandoned_paths(folder: Path, without: Collection[Path] = ()) -> Iterator[Path]:
    """Yield the temporary paths below a folder that no living process writes; `without` is not searched."""
    for where, folders, files in os.walk(folder):
        here = Path(where)
        named = [name for name in (*folders, *files) if TEMPORARY.match(name)]
        folders[:] = [name for name in folders if name not in named and here / name not in without]
        yield from (here / name for name in named if _is_abandoned(here / name))


def _is_abandoned(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # renamed meanwhile, or owned by another user
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def remove_path(path: Path) -> None:
    """Remove a file, or a folder with its content."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, by its path there."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256(path) for path in files}


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, with sorted keys, so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json_text(text: str | bytes, source: str) -> object:
    """Decode JSON without repeated names and without NaN. Raises: UserError for any other text."""

    def check_unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise UserError(f"every name in {source} must be unique", "a name is repeated")
        return values

    def refuse(constant: str) -> None:
        raise UserError(f"numbers in {source} must be finite", f"found {constant}")

    try:
        value: object = json.loads(text, object_pairs_hook=check_unique, parse_constant=refuse)
    except RecursionError:
        raise UserError(f"{source} must be nested {size_limits.NESTING} deep at most", "it is deeper") from None
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{source} must be JSON", str(error)) from None
    return value


def read_json(path: Path) -> Any:
    """Return the content of a JSON file that perfcast wrote.

    Raises:
        UserError: The file is absent, too large or not JSON, or has changed since a stage wrote it.
    """
    from perfcast.utils.result_digests import verify_digest  # which writes with this module

    path = Path(path)
    verify_digest(path)
    try:
        with path.open("rb") as file:
            content = file.read(size_limits.JSON + 1)
    except FileNotFoundError:
        raise UserError(f"{path} must exist", "there is no such file", "run snakemake to make it") from None
    if len(content) > size_limits.JSON:
        raise UserError(f"{path} must have at most {size_limits.JSON} bytes", "it is larger", "make it again")
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} must be JSON", f"it cannot be read ({str(error)[:200]})", "make it again") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def read_object(path: Path, *keys: str) -> dict[str, Any]:
    """Return a JSON object that perfcast wrote.

    Raises:
        UserError: The file does not hold an object, or the object lacks one of `keys`.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError(f"{path} must hold one JSON object", f"it holds {type(value).__name__}", "make it again")
    for key in keys:
        if key not in value:
            raise UserError(f"{path} must have the key {key!r}", "it has none of that name", "make it again")
    return value
