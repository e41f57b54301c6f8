"""HTTP connections with limits: headers arrive in time, one client holds few of them back, errors are JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from perfcast.serving.server_metrics import MetricsMiddleware
from perfcast.utils.errors import UserError

MAX_CONNECTIONS = 1000
"""Connections of one server."""
MAX_WAITING_PER_CLIENT = 100
"""Connections of one client (address) whose request has not arrived; a further one closes the oldest of them."""
HEADER_SECONDS = 10.0
"""Seconds until the headers of a request must have arrived."""

_Waiting = dict["BoundedHttpProtocol", asyncio.TimerHandle]


class BoundedHttpProtocol(H11Protocol):
    """Connection that is closed when its next request does not arrive completely in time."""

    header_seconds: ClassVar[float] = HEADER_SECONDS
    max_waiting: ClassVar[int] = MAX_WAITING_PER_CLIENT
    _waiting: ClassVar[WeakKeyDictionary[ServerState, dict[str, _Waiting]]] = WeakKeyDictionary()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or refuse it when the server has too many."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            requirement = f"the server can have at most {MAX_CONNECTIONS} connections"
            self._refuse(503, UserError(requirement, "all are taken", "try again"))
        else:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the time for headers ends when they are complete."""
        super().data_received(data)
        if self.transport.is_closing() or self._has_request():
            self._stop_waiting()
        elif self not in self._waiting_of_client():
            self._await_request()

    def on_response_complete(self) -> None:
        """Close a connection that asked for it, else let it idle for the time of uvicorn."""
        super().on_response_complete()
        if self._has_request():  # one that was sent ahead
            self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        remedy = "write one Host header, a length in digits, and no control characters"
        self._refuse(400, UserError("a request must be valid HTTP/1.1", "this one is not", remedy))

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _waiting_of_client(self) -> _Waiting:
        clients = self._waiting.setdefault(self.server_state, {})
        return clients.setdefault(self.client[0] if self.client else "", {})

    def _await_request(self) -> None:
        waiting = self._waiting_of_client()
        if len(waiting) >= self.max_waiting:
            next(iter(waiting))._refuse_late()
        waiting[self] = self.loop.call_later(self.header_seconds, self._refuse_late)

    def _stop_waiting(self) -> None:
        waiting = self._waiting_of_client()
        timer = waiting.pop(self, None)
        if timer is not None:
            timer.cancel()
        if not waiting:
            self._waiting[self.server_state].pop(self.client[0] if self.client else "", None)

    def _refuse_late(self) -> None:
        requirement = f"the headers of a request must arrive within {self.header_seconds:g} s"
        self._refuse(408, UserError(requirement, "they did not", "try again"))

    def _refuse(self, status: int, error: UserError) -> None:
        """Send an error as JSON, unless a response has begun, and close the connection."""
        self._stop_waiting()
        if not self._has_request() and not self.transport.is_closing():
            body = json.dumps({"error": str(error)}).encode()
            headers: dict[str, Any] = {
                **MetricsMiddleware.HEADERS,
                "content-type": "application/json",
                "content-length": len(body),
                "connection": "close",
            }
            lines = [f"HTTP/1.1 {status} {STATUS_PHRASES[status].decode()}", *(f"{k}: {v}" for k, v in headers.items())]
            self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()
