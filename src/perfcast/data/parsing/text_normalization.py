"""What all parsers of text columns share: normal form, bounded length, and knowing when a text is used up.

A parser takes the pieces it knows out of the normal form; the text was understood completely when nothing but
punctuation is left. An incomplete result holds what was found all the same. Every pattern works on single blanks and
bounded repetitions, so that time grows linearly.
"""

from __future__ import annotations

import re

MAX_LENGTH = 2000
"""Characters beyond which a value is not looked at: real ones are below 300."""

_ABSENT = frozenset({"", "redacted", "n/a", "na", "nc", "-", "--", "unknown", "not applicable", "tbd"})
_WORD = re.compile(r"[^ ,;:.()\[\]+-]")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that ignores case and lets digits, words and blanks be ASCII only."""
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def normalize(text: str) -> str:
    """Return the text without surrounding blanks, with single blanks inside; "" when it is longer than MAX_LENGTH."""
    return "" if len(text) > MAX_LENGTH else " ".join(text.split())


def states_something(text: str) -> bool:
    """Tell whether a value states anything, as opposed to an empty, redacted or not applicable one."""
    return len(text) > MAX_LENGTH or normalize(text).casefold() not in _ABSENT


def take(pattern: re.Pattern[str], text: str) -> tuple[re.Match[str] | None, str]:
    """Return the first match (or None) and the text with a blank in the place of that match."""
    match = pattern.search(text)
    return match, text if match is None else f"{text[: match.start()]} {text[match.end() :]}"


def take_all(pattern: re.Pattern[str], text: str) -> tuple[list[re.Match[str]], str]:
    """Return all matches in order and the text with a blank in the place of each."""
    return list(pattern.finditer(text)), pattern.sub(" ", text)


def used_up(remainder: str) -> bool:
    """Tell whether nothing but blanks and punctuation is left."""
    return _WORD.search(remainder) is None
