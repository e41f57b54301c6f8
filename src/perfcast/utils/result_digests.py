"""Digests of results: a stage records the SHA-256 of what it wrote, and every reader of a result verifies it.

`<file>.sha256` beside a file and `digests.sha256` in a folder have the format of `sha256sum`, so `sha256sum --check`
reads them. They travel with the results when these are copied, moved or versioned. A file without a record is read as
it is: tables of notebooks have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import file_digests, sha256, write_text

SUFFIX = ".sha256"
FOLDER_RECORD = f"digests{SUFFIX}"
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
_DEEPEST = 10
"""Folders between a result and the record of its folder: models nest."""

_verified: set[tuple[Path, int, int, int, int]] = set()
"""Files that this process verified: path, inode, time of change, size, and the time of their record."""


def record_digests(*paths: Path) -> None:
    """Record the SHA-256 of finished files and folders; hidden files, such as those of Snakemake, do not count.

    A kill leaves the record of the old content at most, which is refused, and the stage runs again.
    """
    for path in map(Path, paths):
        if path.is_dir():
            (path / FOLDER_RECORD).unlink(missing_ok=True)
            write_text(path / FOLDER_RECORD, _format(_visible(path)))
        else:
            write_text(path.with_name(path.name + SUFFIX), _format({path.name: sha256(path)}))


def record_beside(folder: Path) -> None:
    """Record the digests of a folder in a file beside it: DVC takes every file inside for metrics."""
    digests = {f"{folder.name}/{name}": digest for name, digest in _visible(folder).items()}
    write_text(folder.with_name(folder.name + SUFFIX), _format(digests))


def _visible(folder: Path) -> dict[str, str]:
    return {name: digest for name, digest in file_digests(folder).items() if not is_hidden(Path(name))}


def is_hidden(path: Path) -> bool:
    """Return whether a relative path has a part that begins with a dot."""
    return any(part.startswith(".") for part in path.parts)


def _format(digests: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def verify_digest(path: Path) -> None:
    """Check a result against the record of its stage, if there is one.

    Raises: UserError when the file differs, is not in the record of its folder, or the record is damaged.
    """
    path = Path(path).absolute()
    record = _find_record(path)
    if record is None or path == record or not path.is_file():  # readers name what is absent
        return
    state = path.stat()
    key = (path, state.st_ino, state.st_ctime_ns, state.st_size, record.stat().st_ctime_ns)
    if key in _verified:
        return
    beside = record.name != FOLDER_RECORD
    inside = path.relative_to(record.parent)
    if not beside and is_hidden(inside):
        return
    expected = read_record(record).get(path.name if beside else inside.as_posix())
    remedy = f"delete {_shorten(path if beside else record.parent)} and run snakemake"
    if expected is None:
        fact = f"{_shorten(record)} does not list it"
        raise UserError(f"{_shorten(path)} must be one that its stage wrote", fact, remedy)
    if sha256(path) != expected:
        fact = f"it has changed since (the SHA-256 is not that of {record.name})"
        raise UserError(f"{_shorten(path)} must be as its stage wrote it", fact, remedy)
    _verified.add(key)


def verify_folder(folder: Path) -> None:
    """Check every file that the record of a saved folder lists, if it has one. Raises: UserError for the first one."""
    record = folder / FOLDER_RECORD
    for name in read_record(record) if record.is_file() else ():
        if not (folder / name).is_file():
            fact = f"{_shorten(folder)} lacks {name}"
            raise UserError("a saved folder must be as it was saved", fact, "make it again, or fetch it again")
        verify_digest(folder / name)


def verify_inputs(paths: Iterable[Path]) -> None:
    """Check results and folders of them before jobs read them, with everything that their records list.

    Raises: UserError for the first one that differs, see `verify_digest`.
    """
    records = dict.fromkeys(_find_record(path / "any" if path.is_dir() else path) for path in paths)
    for record in filter(None, records):
        for name in read_record(record):
            verify_digest(record.parent / name)


def _shorten(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _find_record(path: Path) -> Path | None:
    """Return the record beside a file, else that of the nearest folder above it."""
    if (beside := path.with_name(path.name + SUFFIX)).is_file():
        return beside
    above = (folder / FOLDER_RECORD for folder in list(path.parents)[:_DEEPEST])
    return next((record for record in above if record.is_file()), None)


def read_record(record: Path) -> Mapping[str, str]:
    """Return the digests of a record by the path relative to its folder. Raises: UserError when it is damaged."""
    state = record.stat()
    return _parse_record(record, state.st_ctime_ns, state.st_size)


@lru_cache(maxsize=64)
def _parse_record(record: Path, changed: int, size: int) -> Mapping[str, str]:
    remedy = "delete it and what it lists, and run snakemake"
    if size > size_limits.JSON:
        raise UserError(f"{_shorten(record)} must be a record of digests", "it is too large", remedy)
    lines = record.read_bytes().decode(errors="replace").splitlines()
    matches = [_LINE.fullmatch(line) for line in lines]
    entries = [match for match in matches if match is not None]
    if len(entries) < len(lines) or not lines:
        raise UserError(f"{_shorten(record)} must be a record of digests", "it is damaged", remedy)
    return {match[2]: match[1] for match in entries}
