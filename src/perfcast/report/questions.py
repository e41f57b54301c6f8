"""The questions in words, read off the splits themselves."""

from __future__ import annotations

import inspect
import re

from perfcast import splits

_OPENING = re.compile(r"^Ask (?:about )?")


def asks_about(split: str) -> str:
    """Return what a split asks about in a few words: the first clause of its own docstring; "" when it has none."""
    told = inspect.getdoc(splits.function(split)) if split in splits.names() else None
    first = (told or "").splitlines()[0] if told else ""
    return _OPENING.sub("", re.split(r"[:.]", first)[0]).strip()
