"""What stands before every route: allowed hosts, bounded bodies, safe headers, counts, and no traceback to anyone."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import traceback
from collections.abc import Collection

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perfcast.serving.limits import Limits, Refusal, refusal
from perfcast.serving.metrics import Metrics

HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Sent with every answer. The page loads from its own server alone, and nobody may frame it."""

_GONE = 499
"""What is counted where nobody waits for the answer any more; nothing is sent."""

_DISCARDED = 32
"""How often the largest body is read and thrown away: who still sends would not see an answer before."""


class Guard:
    """The outermost layer of a server.

    `hosts` are the names a request may call the server by, None for any: without that, a page of another site whose
    name was made to resolve to this machine (DNS rebinding) could ask it. `routes` are the paths that are counted by
    name.
    """

    def __init__(
        self, app: ASGIApp, limits: Limits, metrics: Metrics, hosts: Collection[str] | None, routes: Collection[str]
    ) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self.hosts, self.routes = hosts, frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500
        started = False

        async def sent(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        try:
            refused = self._refused(scope)
            if refused is None:
                await self.app(scope, self._bounded(scope, receive), sent)
            else:
                await _discard(receive, _DISCARDED * self.limits.body, self.limits.seconds)
                await answer(sent, refused.status, str(refused))
        except ClientDisconnect:
            status = _GONE
        except Exception:
            # a bug: its traceback is for whoever runs the server, never for who asked
            traceback.print_exc(file=sys.stderr)
            self.metrics.add("failures")
            if not started:
                await answer(sent, 500, "the forecast failed unexpectedly; the server's log says why")
        finally:
            route = scope["path"] if scope["path"] in self.routes else "other"
            self.metrics.request(route, status, time.perf_counter() - began)

    def _refused(self, scope: Scope) -> Refusal | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = _name(headers.get(b"host", ""))
        if self.hosts is not None and host not in self.hosts:
            allowed = ", ".join(sorted(self.hosts))
            return refusal(400, f"the server must be called {allowed}", f"the request names the host {host[:60]!r}")
        length = headers.get(b"content-length", "0")
        if length.isdecimal() and int(length) > self.limits.body:
            return self._too_large(f"it has {int(length)}")
        return None

    def _too_large(self, fact: str) -> Refusal:
        return refusal(
            413, f"a request must have at most {self.limits.body} bytes", fact, "send fewer machines at a time"
        )

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Return a `receive` that raises Refusal for a body that is too large or does not come."""
        seen, until = 0, time.monotonic() + self.limits.seconds
        ended = False

        async def bounded() -> Message:
            nonlocal seen, ended
            if ended:  # what comes after the body is the end of the connection, however late
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.01, until - time.monotonic()))
            except TimeoutError:
                fact = f"its body was not there after {self.limits.seconds:g} s"
                raise refusal(408, "a request must be sent in time", fact, "try again") from None
            seen += len(message.get("body", b""))
            ended = not message.get("more_body", False)
            if seen > self.limits.body:
                await _discard(receive, _DISCARDED * self.limits.body, self.limits.seconds)
                raise self._too_large("it has more")
            return message

        return bounded


async def answer(send: Send, status: int, error: str) -> None:
    """Send an error as JSON and end the connection."""
    body = json.dumps({"error": error}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


async def _discard(receive: Receive, most: int, seconds: float) -> None:
    """Read and forget what is still being sent, up to a number of bytes and for some seconds."""
    until = time.monotonic() + seconds
    while most > 0:
        try:
            message = await asyncio.wait_for(receive(), max(0.01, until - time.monotonic()))
        except TimeoutError:
            return
        most -= len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return


def _name(host: str) -> str:
    """Return a Host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()
