"""What every target allows: the one line of perfcast, and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfcast.utils.errors import UserError

FOLDER = Path(tempfile.mkdtemp(prefix="perfcast-fuzz-"))


@contextmanager
def refusing() -> Iterator[None]:
    """Take a UserError for an answer when it is one line that can be printed."""
    try:
        yield
    except UserError as error:
        told = str(error)
        if not told.isprintable() or len(told) > 5000:
            raise AssertionError(f"an error must be one short line: {told!r}") from error


def written(name: str, data: bytes) -> Path:
    """Write bytes to a file of the target's own folder."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
