"""What a server takes at most, and how it refuses more."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.errors import UserError


@dataclass(frozen=True)
class Limits:
    """Bounds of one server.

    Units: `body` bytes; `machines` in one request; `seconds` until a request is given up, its body included; `waiting`
    requests at once; `neighbours` measured machines that are shown; `candidates` names that are offered; `explained`
    machines up to which a forecast is explained where nothing else is asked.
    """

    body: int = 1 << 20
    machines: int = 200
    seconds: float = 10.0
    waiting: int = 64
    neighbours: int = 10
    candidates: int = 12
    explained: int = 20


DEFAULTS = Limits()


class Refusal(Exception):  # noqa: N818
    """A request that is not answered: the HTTP status, and the one line that says why and what to do."""

    def __init__(self, status: int, error: UserError) -> None:
        super().__init__(str(error))
        self.status = status


def refusal(status: int, requirement: str, fact: str, remedy: str = "") -> Refusal:
    """Build a refusal with the words of a `UserError`."""
    return Refusal(status, UserError(requirement, fact, remedy))
