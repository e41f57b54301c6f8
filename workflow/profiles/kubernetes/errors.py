"""The one exception of these scripts, told in one line: what is required, what was found, what to do."""

from __future__ import annotations


class UserError(Exception):
    """A mistake that a person can repair; that of perfcast is not at hand without installed packages."""

    def __init__(self, requirement: str, fact: str, remedy: str = "") -> None:
        text = f"{requirement}, however: {fact}" + (f"; {remedy}" if remedy else "")
        super().__init__(one_line(text))


def one_line(text: str) -> str:
    """Return a text as one line that any terminal takes: what cannot be printed is escaped."""
    line = " ".join(text.split())
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)
