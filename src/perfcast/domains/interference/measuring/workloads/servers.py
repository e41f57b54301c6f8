"""Workloads of a server and its client on the loopback interface, in one process each."""

from __future__ import annotations

import ctypes
import http.client
import http.server
import os
import signal
import socket
import struct
from collections.abc import Callable

import numpy as np

from perfcast.domains.interference.measuring.workloads.workload import Workload

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the system kill this process when its parent ends (prctl(2), PR_SET_PDEATHSIG)."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)


def start_server(serve: Callable[[], None]) -> int:
    """Fork a process that runs `serve` and ends with this one; return its process id."""
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            serve()
        finally:
            os._exit(0)
    return child


class _Served(Workload):
    """A client with a server process of its own."""

    RESOURCE = "network"
    _server = 0

    def close(self) -> None:
        """End the server."""
        if self._server:
            os.kill(self._server, signal.SIGKILL)
            os.waitpid(self._server, 0)
            self._server = 0


class KeyValue(_Served):
    """A key-value store in memory with a binary protocol over TCP: 90 % reads of values of 512 bytes."""

    MEANING = "twenty requests of a key-value server, one after another"
    KEYS, VALUE, REQUESTS = 10_000, 512, 20
    _HEADER = struct.Struct("<BIH")
    """Operation (0 get, 1 set), key, and length of the value that follows."""

    def prepare(self) -> None:
        """Start the server and connect."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._server = start_server(lambda: self._serve(listener))
        self._connection = socket.create_connection(listener.getsockname())
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.close()
        random = np.random.default_rng(self.seed)
        self._keys = random.zipf(1.2, 100_000) % self.KEYS
        self._writes = random.random(100_000) < 0.1
        self._value = random.bytes(self.VALUE)
        self._next = 0

    def _serve(self, listener: socket.socket) -> None:
        values = {key: bytes(self.VALUE) for key in range(self.KEYS)}
        connection, _ = listener.accept()
        listener.close()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while header := _receive(connection, self._HEADER.size):
            operation, key, length = self._HEADER.unpack(header)
            if operation:
                values[key] = _receive(connection, length)
                connection.sendall(self._HEADER.pack(operation, key, 0))
            else:
                connection.sendall(self._HEADER.pack(operation, key, self.VALUE) + values[key])

    def operate(self) -> None:
        """Send requests and wait for each answer."""
        for _ in range(self.REQUESTS):
            index = self._next = (self._next + 1) % len(self._keys)
            write = bool(self._writes[index])
            content = self._value if write else b""
            self._connection.sendall(self._HEADER.pack(write, int(self._keys[index]), len(content)) + content)
            length = self._HEADER.unpack(_receive(self._connection, self._HEADER.size))[2]
            if length:
                _receive(self._connection, length)

    def close(self) -> None:
        """Disconnect and end the server."""
        self._connection.close()
        super().close()


def _receive(connection: socket.socket, size: int) -> bytes:
    """Return exactly `size` bytes, or nothing at the end of the connection."""
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _Page(http.server.BaseHTTPRequestHandler):
    """Handler of a generated page, over a connection that stays open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    CONTENT = ("<p>" + "interference " * 8 + "</p>\n") * 150

    def do_GET(self) -> None:
        """Answer with the page, which names the path."""
        content = f"<h1>{self.path}</h1>{self.CONTENT}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class Http(_Served):
    """An HTTP server of the standard library and its client."""

    MEANING = "two pages of 16 KiB of an HTTP server, one after another"

    def prepare(self) -> None:
        """Start the server and connect."""
        server = http.server.HTTPServer(("127.0.0.1", 0), _Page)
        self._server = start_server(server.serve_forever)
        self._client = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
        server.server_close()

    def operate(self) -> None:
        """Request two pages."""
        for path in ("/a", "/b"):
            self._client.request("GET", path)
            self._client.getresponse().read()

    def close(self) -> None:
        """Disconnect and end the server."""
        self._client.close()
        super().close()
