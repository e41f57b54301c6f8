"""HTTP connections of uvicorn, bounded: headers arrive in time, framing is small beside a body, errors are JSON."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from perfcast.serving.server_metrics import SECURITY_HEADERS
from perfcast.utils.errors import UserError

MAX_CONNECTIONS = 1000
"""Connections of one worker."""
MAX_FRAMING = 1 << 16
"""Bytes of a request that are not its body: headers, sizes of chunks, trailers."""
_PIECE = 1 << 14
"""Bytes that are parsed at once: in chunks of one byte they take a hundredth of a second."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Connection that is closed when its next request does not arrive in time, or is mostly framing."""

    header_seconds: ClassVar[float] = 10.0
    """Seconds until the headers of a request must have arrived."""
    max_waiting: ClassVar[int] = 500
    """Connections whose request has not arrived; a further one closes the oldest of them."""
    _waiting: ClassVar[dict[BoundedHttpProtocol, asyncio.TimerHandle]] = {}
    _framing = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or refuse it when the worker has too many."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            requirement = f"the server can have at most {MAX_CONNECTIONS} connections"
            self._refuse(503, UserError(requirement, "all are taken", "try again"))
        else:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and stop where the connection is closed."""
        if not self._is_answering():
            self._await_headers()
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            piece = data[start : start + _PIECE]
            self._framing += len(piece)
            super().data_received(piece)
            if self._framing > MAX_FRAMING:
                requirement = f"a request can have at most {MAX_FRAMING} bytes beside its body"
                self._refuse(413, UserError(requirement, "this one has more", "send larger chunks, or fewer headers"))

    def on_message_begin(self) -> None:
        """Count the bytes of the next request."""
        self._framing = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start the request: its headers are there."""
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._framing -= len(body)
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        remedy = "write a length in digits, and no control characters"
        self._refuse(400, UserError("a request must be valid HTTP/1.1", "this one is not", remedy))

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_headers(self) -> None:
        if self not in self._waiting:
            if len(self._waiting) >= self.max_waiting:
                next(iter(self._waiting))._refuse_late()
            self._waiting[self] = self.loop.call_later(self.header_seconds, self._refuse_late)

    def _stop_waiting(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()

    def _refuse_late(self) -> None:
        requirement = f"the headers of a request must arrive within {self.header_seconds:g} s"
        self._refuse(408, UserError(requirement, "they did not", "try again"))

    def _refuse(self, status: int, error: UserError) -> None:
        """Send an error as JSON, unless another response would be before it, and close the connection."""
        self._stop_waiting()
        has_begun = self.pipeline or (self._is_answering() and self.cycle.response_started)
        if not has_begun and not self.transport.is_closing():
            body = json.dumps({"error": str(error)})
            headers = {**SECURITY_HEADERS, "content-type": "application/json", "content-length": str(len(body))}
            lines = [f"{name}: {value}\r\n" for name, value in {**headers, "connection": "close"}.items()]
            self.transport.write(STATUS_LINE[status] + f"{''.join(lines)}\r\n{body}".encode())
        self.transport.close()
