"""The one exception a user can cause."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """A mistake the user can repair, told in one line: requirement, fact, remedy.

    The command line prints it without a traceback and exits with code 2. Every other exception is a bug.
    """

    def __init__(self, requirement: str, fact: str, remedy: str = "") -> None:
        self.requirement, self.fact, self.remedy = requirement, fact, remedy
        text = f"{requirement}, however: {fact}"
        if remedy:
            text += f"; {remedy}"
        super().__init__(printable(text))


def printable(text: str) -> str:
    """Return a text as one line that any terminal and any encoding takes: what cannot be printed is escaped."""
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)


def unknown_name(what: str, name: str, known: Iterable[str]) -> UserError:
    """Build the error for a name that is not among the known ones, with the nearest as a hint."""
    names = sorted(known)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UserError(
        f"{what} must be one of {', '.join(names) or '(none exist)'}", f"found {name!r}", hint + "see conf/"
    )
