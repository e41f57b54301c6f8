"""HTTP connections of uvicorn whose requests arrive in a bounded number of pieces."""

from __future__ import annotations

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_PIECES = 4096
"""Pieces of a request's body: chunks as the client sends them, or what a read of the socket holds. Each costs the same,
however small it is; a body of the largest size has so many of 256 bytes."""


class _CountingConnection(h11.Connection):
    """Connection that reads no further piece of a request once it has had too many."""

    pieces = 0

    @property
    def is_exhausted(self) -> bool:
        return self.pieces > MAX_PIECES

    def next_event(self) -> Any:
        """Return the next event; none from an exhausted connection."""
        if self.is_exhausted:
            return h11.NEED_DATA
        event = super().next_event()
        if isinstance(event, h11.Data):
            self.pieces += 1
        elif isinstance(event, h11.Request):
            self.pieces = 0
        return event


class BoundedProtocol(H11Protocol):
    """Protocol of uvicorn that closes a connection whose request comes in too many pieces."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        most = self.config.h11_max_incomplete_event_size or 1 << 16
        self.conn: _CountingConnection = _CountingConnection(h11.SERVER, most)

    def handle_events(self) -> None:
        """Handle what has arrived."""
        super().handle_events()
        if self.conn.is_exhausted:
            self.transport.close()
