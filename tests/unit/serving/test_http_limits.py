"""Connections that hold back their requests, endless bodies, and requests that are no HTTP; on loopback alone."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from champion_project import project
from serving_project import KNOWN, request, served

from perfcast.serving.request_limits import DEFAULT_LIMITS

HALF = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Half: "
CHUNKS = {"large": b"10000\r\n" + b"x" * 65536 + b"\r\n", "of one byte": b"1\r\n \r\n" * 20_000}
BODY_IN_CHUNKS = (
    b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def connect(address):
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def receive(connection):
    """Return status, headers and body of everything that arrives until the server closes."""
    content = b""
    while piece := connection.recv(65536):
        content += piece
    head, _, body = content.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body


@pytest.fixture(scope="module")
def server():
    with served(project().champion, replace(DEFAULT_LIMITS, seconds=3.0), {"timeout_keep_alive": 1}) as address:
        yield address


def test_what_is_no_http_is_refused_and_the_connection_closed(server):
    """Others are in `tests/hostile/test_requests.py`."""
    for sent in (
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:99999\r\n\r\n",
        BODY_IN_CHUNKS + b"zz\r\n",
    ):
        with connect(server) as connection:
            connection.sendall(sent)
            assert receive(connection)[0] == 400


def test_a_connection_that_asks_nothing_further_is_closed(server):
    with connect(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert receive(connection)[0] == 200


def test_connections_beyond_the_limit_get_503_until_others_close():
    with served(project().champion, uvicorn_options={"limit_concurrency": 20}) as address:
        held = [connect(address) for _ in range(40)]
        for connection in held:
            connection.sendall(HALF)
        reply = request(f"{address}/health")
        assert (reply.status, reply.body) == (503, b"Service Unavailable")
        for connection in held:
            connection.close()
        until = time.monotonic() + 20
        while request(f"{address}/health").status == 503 and time.monotonic() < until:
            time.sleep(0.05)
        assert request(f"{address}/health").status == 200


def test_headers_are_bounded(server):
    with connect(server) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(HALF + b"x" * 2_000_000)
        with contextlib.suppress(ConnectionResetError):  # bytes that the server did not read reset it
            assert receive(connection)[0] == 400


@pytest.mark.parametrize("chunk", CHUNKS.values(), ids=CHUNKS)
def test_an_endless_body_is_refused_and_the_connection_closed(server, chunk):
    most = 80 * DEFAULT_LIMITS.body // 65536  # beyond what the buffers of both ends hold
    with connect(server) as connection:
        connection.sendall(BODY_IN_CHUNKS)
        sent = 0
        with pytest.raises(OSError):
            for sent in range(most):  # noqa: B007
                connection.sendall(chunk)
        assert sent < most - 1
    assert request(f"{server}/health").status == 200


def test_twenty_connections_of_tiny_chunks_do_not_stop_the_server(server):
    """Each sends 2 MB, and is closed before the server has parsed them."""
    connections = [connect(server) for _ in range(20)]
    for connection in connections:
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.send(BODY_IN_CHUNKS + CHUNKS["of one byte"] * 17)
    begin = time.monotonic()
    assert request(f"{server}/health").status == 200
    seconds = time.monotonic() - begin
    for connection in connections:
        connection.close()
    assert seconds < 10


def test_a_small_body_in_chunks_of_one_byte_is_read(server):
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in json.dumps(KNOWN).encode())
    with connect(server) as connection:
        connection.sendall(BODY_IN_CHUNKS + chunks + b"0\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
