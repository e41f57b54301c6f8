"""What goes wrong in these scripts, each told in one line."""

from __future__ import annotations

_LONGEST = 2000
"""Characters of what a cluster says."""


class UserError(Exception):
    """A mistake that a person can repair: what is required, what was found, what to do.

    That of perfcast is not at hand without installed packages.
    """

    def __init__(self, requirement: str, fact: str, remedy: str = "") -> None:
        text = f"{requirement}, however: {fact}" + (f"; {remedy}" if remedy else "")
        super().__init__(one_line(text))


class RefusedError(Exception):
    """What the cluster answers in place of what was asked for: its status and its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(one_line(message)[:_LONGEST] or "no message")
        self.status = status


class SilentError(Exception):
    """The cluster did not answer, however often it was asked."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message)[:_LONGEST])


def one_line(text: str) -> str:
    """Return a text as one line that any terminal takes: what cannot be printed is escaped."""
    line = " ".join(text.split())
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)
