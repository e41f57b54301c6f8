"""The server: a socket that worker processes share, and the supervisor of uvicorn that replaces them."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.supervisors import Multiprocess

from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import PredictOptions, predict_batch
from perfcast.schema.table import Tag
from perfcast.serving.app import LOOPBACK, create_app
from perfcast.serving.request_limits import RequestLimits
from perfcast.serving.server_metrics import METRICS_FOLDER
from perfcast.utils.errors import UserError

_SHUTDOWN_SECONDS = 5
"""Seconds that running requests get after SIGINT or SIGTERM."""
_KILL_SECONDS = 7
"""Seconds after SIGINT or SIGTERM until workers that still run are killed."""
_PING_SECONDS = 10
"""Seconds after which a worker that does not answer its supervisor is replaced."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on a host."""
    return host in ("localhost", "::1") or host.startswith("127.")


def listen(host: str, port: int) -> socket.socket:
    """Open a port; 0 opens any free one. Raises: UserError when the port or the host is not available."""
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


def default_workers() -> int:
    """Return the number of workers for the cores that this process may use."""
    return min(4, len(os.sched_getaffinity(0)))


def serve(
    create: Callable[[], Any], listening: socket.socket, workers: int, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until SIGINT or SIGTERM with the application that every worker creates; call `ready` once all answer.

    `create` is pickled for the workers.
    """
    if workers > 1:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the cores
    config = uvicorn.Config(
        create,
        factory=True,
        workers=workers,
        http="perfcast.serving.http_protocol:BoundedHttpProtocol",
        ws="none",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=_PING_SECONDS,
    )
    with TemporaryDirectory(prefix="perfcast-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        supervisor = _Supervisor(config, [listening], ready)
        try:
            supervisor.run()
        finally:
            signal.alarm(0)
            for process in supervisor.processes:
                process.process.kill()
            del os.environ[METRICS_FOLDER]


class _Supervisor(Multiprocess):
    """Supervisor that tells when its workers answer, and ends in time whatever they do."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], ready: Callable[[], None]) -> None:
        super().__init__(config, sockets)
        self._ready: Callable[[], None] | None = ready
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._end)
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(0))  # wherever it waits for a worker

    def keep_subprocess_alive(self) -> None:
        """Replace workers that ended or hang."""
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in before - {process.pid for process in self.processes}:
            print("perfcast serve: a worker ended or hung; another takes its place", file=sys.stderr, flush=True)
            mark_process_dead(pid)
        if self._ready is not None and all(process.is_ready() for process in self.processes):
            self._ready()
            self._ready = None

    def _end(self, number: int, _: FrameType | None) -> None:
        if not self.signal_queue:
            signal.alarm(_KILL_SECONDS)
        self.signal_queue.append(number)


def create_worker_app(load: Callable[[], Champion], host: str, machines: int) -> FastAPI:
    """Return the application of a worker process, which ends with its supervisor.

    Args: `machines` of a request at most.
    """
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    try:
        champion = load()
    except UserError as error:  # the files have changed since the server started
        print(f"perfcast serve: {error}", file=sys.stderr)
        sys.exit(1)
    _warm_up(champion)
    hosts = sorted({*LOOPBACK, host.lower()}) if is_loopback(host) else None
    return create_app(champion, RequestLimits(machines=machines), hosts)


def _end_with_supervisor() -> None:
    if supervisor := multiprocessing.parent_process():
        supervisor.join()
        shutil.rmtree(os.environ[METRICS_FOLDER], ignore_errors=True)
        os.kill(os.getpid(), signal.SIGTERM)


def _warm_up(champion: Champion) -> None:
    """Predict the most measured CPU once, so that the first request does not wait for lazy initialization."""
    entity = champion.reference_data.measured.column_of(Tag.ENTITY)
    for name in champion.entity_names.keys[:1]:
        with suppress(UserError):
            predict_batch([MachineEntry(1, "", {entity: name})], champion, PredictOptions())
