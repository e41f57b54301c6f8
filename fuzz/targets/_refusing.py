"""Outcome that every target allows: a UserError of one line."""

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
        message = str(error)
        if not message.isprintable() or len(message) > 5000:
            raise AssertionError(f"an error must be one short line: {message!r}") from error


def written(name: str, data: bytes) -> Path:
    """Write bytes to a file of the target's own folder."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
