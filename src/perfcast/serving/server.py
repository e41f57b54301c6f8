"""Run the application on a port until it is told to end."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from perfcast.errors import UserError
from perfcast.inference import Champion
from perfcast.serving.answering import Answering
from perfcast.serving.app import LOOPBACK, create_app
from perfcast.serving.limits import Limits

_MOST_CONNECTIONS = 1000
_LAST = 5
"""Seconds that running requests have when the server is told to end."""


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a server on a host."""
    return host in ("localhost", "::1") or host.startswith("127.")


def listen(host: str, port: int) -> socket.socket:
    """Take a port; 0 takes any free one. Raises: UserError when it cannot be had."""
    if not 0 <= port <= 65535:
        raise UserError("--port must be from 0 to 65535", f"it is {port}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except (OSError, UnicodeError):
        raise UserError("--host must be an address of this machine", f"it is {host!r}", "try 127.0.0.1") from None
    try:
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        fact = f"{host}:{port} cannot be had ({(error.strerror or str(error)).lower()})"
        raise UserError("the server needs a free port", fact, "try another --port") from None
    return listening


def address_of(listening: socket.socket, host: str) -> str:
    """Return the address that a browser opens."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def serve(
    champion: Champion, listening: socket.socket, host: str, limits: Limits, ready: Callable[[], None] = lambda: None
) -> None:
    """Answer until SIGINT or SIGTERM, then end cleanly; `ready` is called once answers can be had."""
    hosts = {*LOOPBACK, host.lower()} if is_loopback(host) else None
    Answering(champion).warm()
    config = uvicorn.Config(
        create_app(champion, limits, hosts),
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_LAST,
    )
    server = _Server(config, ready)
    # uvicorn ends on these and then raises them once more for whoever had them before: that ending was meant
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _nothing)
    server.run(sockets=[listening])
    if not server.started:
        print("perfcast serve: the server did not start", file=sys.stderr)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def _nothing(*_: object) -> None:
    pass
