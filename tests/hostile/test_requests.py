"""Hostile requests: each gets an error status and one line, and the next request is served."""

from __future__ import annotations

import gzip
import resource
import socket
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from champion_project import project
from serving_project import JSON, KNOWN, PLAIN, request, served

from perfcast.serving.request_limits import DEFAULT_LIMITS


@pytest.fixture(scope="module")
def server():
    with served(project().champion, replace(DEFAULT_LIMITS, seconds=60.0)) as address:
        yield address


BODIES = {
    "half a character": b'{"processor": "\\ud800"}',
    "NUL in a value": b'{"processor": "EPYC\\u00009654"}',
    "a terminal's command": b'{"processor": "\\u001b]0;x\\u0007"}',
    "minus infinity": b'{"chips": -Infinity}',
    "a huge whole number": b'{"processor": "Xeon Gold 6148", "chips": ' + b"9" * 4000 + b"}",
    "true for a number": b'{"processor": true, "chips": 2}',
    "objects in objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "UTF-16": '{"chips": 2}'.encode("utf-16"),
    "a name of 100 kB": b'{"' + b"x" * 100_000 + b'": 1}',
    "too many machines": b"[" + b"{}," * 1300 + b"{}]",
    "a body past all": b" " * (DEFAULT_LIMITS.body + 1),
}


@pytest.mark.parametrize("name", BODIES)
def test_hostile_body_gets_one_line(server, name):
    reply = request(f"{server}/predict{PLAIN}", BODIES[name])
    assert 400 <= reply.status < 500
    assert reply.error.isprintable()
    assert len(reply.error) < 3000


QUERIES = (
    "level=1e309",
    "when=%ED%A0%80",
    "a=1&a=2",
    "level=٢",
)


@pytest.mark.parametrize("query", QUERIES)
def test_hostile_option_gets_status_400_or_422(server, query):
    server_url = urlsplit(server)
    status, body = raw(
        server_url, f"POST /predict?{query} HTTP/1.1", b'{"chips": 2}', {"Content-Type": "application/json"}
    )
    assert status in (400, 422)
    assert b"Traceback" not in body


def raw(server_url, first, body=b"", headers=None, length=None):
    """Send raw bytes; return status (0: the connection closed without a response) and body."""
    lines = {
        "Host": server_url.netloc,
        "Connection": "close",
        "Content-Length": len(body) if length is None else length,
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    with socket.create_connection((server_url.hostname, server_url.port), timeout=30) as connection:
        try:
            connection.sendall(f"{first}\r\n{head}\r\n".encode("utf-8", "surrogateescape") + body)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionError:
            return 0, b""
    return (int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]) if answer else (0, b"")


HEADERS = {
    "a length below nothing": {"Content-Length": "-1"},
    "a length past all": {"Content-Length": "9" * 30},
    "two ways of length": {"Transfer-Encoding": "chunked"},
    "another host": {"Host": "example.org"},
    "a host of bad bytes": {"Host": "\udcff\udcfe"},
    "a header of 1 MB": {"X-Long": "x" * 1_000_000},
    "no content type": {"Content-Type": None},
    "packed": {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    "another protocol": {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"},
}


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_headers_are_refused_and_the_next_request_is_served(server, name, capfd):
    server_url = urlsplit(server)
    body = b"\x1f\x8b\x08\x00" if name == "packed" else b'{"chips": 2}\r\n\r\n'
    status, answer = raw(server_url, "POST /predict HTTP/1.1", body, HEADERS[name])
    assert status == 0 or 400 <= status < 500, (status, answer)
    assert b"Traceback" not in answer
    assert "Traceback" not in capfd.readouterr().err
    assert request(f"{server}/predict{PLAIN}", KNOWN).status == 200


@pytest.mark.parametrize(
    "first",
    [
        "GET /../../etc/passwd HTTP/1.1",
        "GET /static/..%2f..%2fapp.py HTTP/1.1",
        "TRACE / HTTP/1.1",
        "\x00\x01\x02",
        "GET /" + "x" * 100_000 + " HTTP/1.1",
        "GET http://example.org/health HTTP/1.1",
    ],
    ids=lambda first: first[:30].encode("unicode_escape").decode(),
)
def test_hostile_request_line_is_refused(server, first, capfd):
    status, answer = raw(urlsplit(server), first, headers={"Content-Type": "application/json"})
    assert status == 0 or 400 <= status < 500 or (status == 200 and b'"status"' in answer), (status, answer[:200])
    assert b"Traceback" not in answer
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("encoding", ["gzip", "identity, gzip"])
def test_a_compressed_body_is_refused_whatever_it_holds(server, encoding):
    for body in (KNOWN, gzip.compress(b"[" * 10_000_000)):
        reply = request(f"{server}/predict{PLAIN}", body, headers={**JSON, "Content-Encoding": encoding})
        assert (reply.status, "must not be compressed" in reply.error) == (415, True)
    assert request(f"{server}/predict{PLAIN}", KNOWN, headers={**JSON, "Content-Encoding": "identity"}).status == 200


@pytest.mark.parametrize("query", ["level=0.9&level=0.5", "strict=1&strict=1"])
def test_an_option_that_is_given_twice_is_refused(server, query):
    reply = request(f"{server}/predict?{query}", KNOWN)
    assert (reply.status, "is given twice" in reply.error) == (422, True)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("predict", {**KNOWN, "chips": True}),
        ("predict-measured", {"machines": [KNOWN], "measured": [{**KNOWN, "suite": "CINT2017rate", "score": True}]}),
        ("rank", {"machines": [KNOWN], "years": True}),
        ("rank", {"machines": [{**KNOWN, "price": 1e-320}], "by": "score/price"}),
        ("rank", {"machines": [{**KNOWN, "price": 1e308}], "by": "price"}),
    ],
)
def test_truth_values_and_absurd_numbers_are_no_numbers(server, route, body):
    reply = request(f"{server}/{route}", body)
    assert reply.status == 422, reply.body[:300]
    assert " must be " in reply.error


@pytest.mark.parametrize("path", ["predict/", "predict%2F"])
def test_no_route_redirects(server, path):
    for body in (None, KNOWN):
        reply = request(f"{server}/{path}", body)
        assert (reply.status, "there is no" in reply.error) == (404, True)


def resident():
    """Return the memory of this process, the server included, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's memory counters")
def test_memory_and_open_files_stay_the_same_over_many_requests(server):
    bodies = [b"{", b"[" * 10_000, b'{"processor": "Xeon Gold 6148", "chips": 2}', b'{"processor": "' + b"x" * 50_000]

    def send(count):
        for number in range(count):
            assert request(f"{server}/predict{PLAIN}", bodies[number % len(bodies)]).status in (200, 400, 422)
        return resident(), len(list(Path("/proc/self/fd").iterdir()))

    memory, files = send(60)
    later, more_files = send(120)
    assert later - memory < 20
    assert more_files <= files + 2
