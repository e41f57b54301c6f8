"""The exception for mistakes of the user, and its one-line message."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """Mistake that the user can repair, as one line: "requirement, but fact; remedy".

    The command line prints it without a traceback and exits with code 2. Every other exception is a bug. It is a
    ValueError for callers from Python.

    Args:
        requirement: The rule, with the field as the user typed it: "--level must be between 0 and 1".
        fact: The value that breaks the rule: "it is 1.5".
        remedy: What to do: "0.9 means 90 %"; empty where the rule says it.
    """

    def __init__(self, requirement: str, fact: str, remedy: str = "") -> None:
        self.requirement, self.fact, self.remedy = requirement, fact, remedy
        # a requirement of one word is the field alone: "cores: 24 per chip is more than the 16 of this CPU model"
        text = f"{requirement}{', but' if ' ' in requirement else ':'} {fact}"
        if remedy:
            text += f"; {remedy}"
        super().__init__(printable(text))


def printable(text: str) -> str:
    """Return a text as one line for any terminal and encoding: unprintable characters are escaped."""
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


def unknown_name(what: str, name: str, known: Iterable[str]) -> UserError:
    """Return the error for an unknown name, with the most similar known name as a hint."""
    names = sorted(known)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UserError(
        f"{what} must be one of {', '.join(names) or '(none exist)'}", f"found {name!r}", hint + "see conf/"
    )
