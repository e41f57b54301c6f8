"""Steps that all parsers of text columns share: normal form, bounded length, and extraction of known pieces.

A parser extracts the pieces that it knows from the normal form. The text is complete when nothing but punctuation
remains; an incomplete result keeps the known pieces. Every pattern works on single blanks and
bounded repetitions, so that time grows linearly.
"""

from __future__ import annotations

import re
from functools import cache

from perfcast.domains import read_table

MAX_LENGTH = 2000
"""Longest text that is parsed; real ones have below 300 characters."""

_ABSENT = frozenset(
    {
        "",
        "redacted",
        "n/a",
        "na",
        "nc",
        "-",
        "--",
        "unknown",
        "not applicable",
        "tbd",
    }
)
_WORD = re.compile(r"[^ ,;:.()\[\]+-]")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that ignores case and lets digits, words and blanks be ASCII only."""
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def normalize(text: str) -> str:
    """Return the text without surrounding blanks, with single blanks inside; "" when it is longer than MAX_LENGTH."""
    return "" if len(text) > MAX_LENGTH else " ".join(text.split())


def is_stated(text: str) -> bool:
    """Return whether a value states anything; an empty, redacted or not applicable one does not."""
    return len(text) > MAX_LENGTH or normalize(text).casefold() not in _ABSENT


def extract_first(pattern: re.Pattern[str], text: str) -> tuple[re.Match[str] | None, str]:
    """Return the first match (or None) and the text with a blank in the place of that match."""
    match = pattern.search(text)
    return match, text if match is None else f"{text[: match.start()]} {text[match.end() :]}"


def extract_all(pattern: re.Pattern[str], text: str) -> tuple[list[re.Match[str]], str]:
    """Return all matches in order and the text with a blank in the place of each."""
    return list(pattern.finditer(text)), pattern.sub(" ", text)


def is_consumed(remainder: str) -> bool:
    """Return whether nothing but blanks and punctuation remains."""
    return _WORD.search(remainder) is None


Rules = tuple[tuple[re.Pattern[str], str], ...]
"""Patterns with their replacements, or with the names of what they find, in the order in which they are tried."""


@cache
def read_rules(table: str) -> Rules:
    """Return the rules of a table in `wordings.csv`, for `rewrite` or for `find_kind`."""
    rows = read_table(__package__, "wordings.csv")
    return tuple((compile_pattern(row["pattern"]), row["result"]) for row in rows if row["table"] == table)


def rewrite(text: str, rules: Rules) -> str:
    """Return the normal form of a text after all replacements in order, with single blanks after each."""
    value = normalize(text)
    for pattern, replacement in rules:
        value = " ".join(pattern.sub(replacement, value).split())
    return value


def find_kind(kinds: Rules, text: str) -> str | None:
    """Return the name of the first pattern that is in a text, None where none is."""
    return next((name for pattern, name in kinds if pattern.search(text)), None)
