"""HTTP server process: socket, signals and shutdown."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial

import uvicorn

from perfcast.inference.champion import Champion
from perfcast.serving.app import LOOPBACK, create_app
from perfcast.serving.http_protocol import BoundedHttpProtocol
from perfcast.serving.prediction_processes import PredictionProcess
from perfcast.serving.prediction_service import PredictionService
from perfcast.serving.request_limits import RequestLimits
from perfcast.utils.errors import UserError

_SHUTDOWN_SECONDS = 5
"""Seconds that running requests get after SIGINT or SIGTERM."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on a host."""
    return host in ("localhost", "::1") or host.startswith("127.")


def listen(host: str, port: int) -> socket.socket:
    """Open a port; 0 opens any free one. Raises: UserError when the port or the host is not available."""
    if not 0 <= port <= 65535:
        raise UserError("--port must be from 0 to 65535", f"got {port}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except (OSError, UnicodeError):
        raise UserError("--host must be an address of this machine", f"got {host!r}", "try 127.0.0.1") from None
    try:
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        fact = f"{host}:{port} is not available ({(error.strerror or str(error)).lower()})"
        raise UserError("the server needs a free port", fact, "try another --port") from None
    return listening


def address_of(listening: socket.socket, host: str) -> str:
    """Return the address for a browser."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def serve(
    champion: Champion,
    listening: socket.socket,
    host: str,
    limits: RequestLimits,
    *,
    ready: Callable[[], None] = lambda: None,
    processes: Sequence[PredictionProcess] = (),
) -> None:
    """Serve until SIGINT or SIGTERM, then shut down cleanly; call `ready` once the server answers.

    Without `processes`, batches are predicted in this one.
    """
    hosts = sorted({*LOOPBACK, host.lower()}) if is_loopback(host) else None
    service = PredictionService(champion)
    service.warm_up()
    workers = [partial(process.run, otherwise=service.run) for process in processes]
    config = uvicorn.Config(
        create_app(champion, limits, hosts, workers),
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        http=BoundedHttpProtocol,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    server = _Server(config, ready)
    # uvicorn shuts down on these signals and then raises them again for the previous handlers
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
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
