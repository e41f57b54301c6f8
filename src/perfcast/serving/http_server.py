"""The server: a socket that the workers of uvicorn share, each with the champion and the application."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import active_children, parent_process
from threading import Thread
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import predict_machines
from perfcast.inference.suites import Suites
from perfcast.serving.app import LOOPBACK, METRICS_FOLDER, create_app
from perfcast.serving.request_limits import RequestLimits
from perfcast.utils.errors import UserError
from perfcast.utils.io import temporary_folder

UVICORN: dict[str, Any] = {
    "http": "perfcast.serving.bounded_http:BoundedProtocol",
    "h11_max_incomplete_event_size": 1 << 16,
    "ws": "none",
    "log_level": "error",
    "timeout_keep_alive": 5,
    "timeout_graceful_shutdown": 5,
    "timeout_worker_healthcheck": 10,
    **dict.fromkeys(("access_log", "proxy_headers", "server_header"), False),
}
"""Options of uvicorn under their own names. Units: bytes of headers; seconds.

A worker imports the protocol by its name, and only when its supervisor can already ask whether it lives.
"""
_ENDING = UVICORN["timeout_graceful_shutdown"] + 1
"""Seconds until a worker that was asked to end is killed."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on a host."""
    return host in ("localhost", "::1") or host.startswith("127.")


def listen(host: str, port: int) -> socket.socket:
    """Open a port; 0 opens any free one. Raises: UserError when the port or the host is not available."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UserError("--host must be an address of this machine", f"got {host!r}", "try 127.0.0.1") from None
    try:
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        fact = f"{host}:{port} is not available ({os.strerror(error.errno or 0).lower()})"
        raise UserError("the server needs a free port", fact, "try another --port") from None


def address_of(listening: socket.socket, host: str) -> str:
    """Return the address for a browser."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def serve(create: Callable[[], Any], listening: socket.socket, workers: int | None, limit_concurrency: int) -> None:
    """Serve until SIGINT or SIGTERM with the application that every worker creates.

    Args: `create` is pickled for the workers, by default one for each core, at most four.
    """
    workers = workers or min(4, len(os.sched_getaffinity(0)))
    if workers > 1:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the cores
    options: dict[str, Any] = {**UVICORN, "workers": workers, "limit_concurrency": limit_concurrency}
    with temporary_folder() as folder:
        os.environ[METRICS_FOLDER] = str(folder)
        _Supervisor(uvicorn.Config(create, factory=True, **options), [listening]).run()


class _Supervisor(Multiprocess):
    """Supervisor of uvicorn that ends at once on a signal, and ends workers that do not answer."""

    def run(self) -> None:
        """Run until SIGINT or SIGTERM, whatever the supervisor waits for."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        try:
            super().run()
        except _StoppedError:
            end_workers()

    def _stop(self, *arguments: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise _StoppedError


class _StoppedError(Exception):
    """The supervisor was asked to end."""


def end_workers() -> None:
    """End all workers; those that are hung after the time of a graceful end are killed."""
    workers = active_children()
    for worker in workers:
        worker.terminate()
    until = time.monotonic() + _ENDING
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
        if worker.exitcode is None:
            worker.kill()
            worker.join()


def _end_with_supervisor() -> None:
    """End this worker when its supervisor has ended, also where it was killed."""
    supervisor = parent_process()
    if supervisor is None:
        return
    supervisor.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_ENDING)
    os._exit(1)  # a hung worker handles no signal


def create_worker_app(load: Callable[[], Suites], host: str, machines: int) -> FastAPI:
    """Return the application of a worker process.

    Args: `machines` of a request at most.
    """
    Thread(target=_end_with_supervisor, daemon=True).start()
    try:
        suites = load()
    except UserError as error:  # the files have changed since the server started
        print(f"perfcast serve: {error}", file=sys.stderr)
        sys.exit(STARTUP_FAILURE)
    newest = suites.last
    for name in newest.entity_names.keys[:1]:  # the first request does not wait for lazy initialization
        with suppress(UserError):
            predict_machines([MachineEntry(1, "", {newest.entity: name})], suites, PredictOptions())
    hosts = sorted({*LOOPBACK, host.lower()}) if is_loopback(host) else None
    return create_app(suites, RequestLimits(machines=machines), hosts)
