"""Server of the generated champion on a free local port, in a thread."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import uvicorn

from perfcast.inference.suites import Suites
from perfcast.serving import create_app
from perfcast.serving.http_server import UVICORN, address_of, listen
from perfcast.serving.request_limits import DEFAULT_LIMITS

JSON = {"Content-Type": "application/json"}
KNOWN = {"processor": "Xeon Gold 6148", "chips": 2}
WRONG = {"processor": "Xeon Gold 6148", "chips": 2, "cores": 500}
PLAIN = "?explain=false&neighbors=0"


@dataclass(frozen=True)
class Reply:
    """Response of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The message of an error, checked for one line and no other content."""
        payload = self.json()
        assert list(payload) == ["error"]
        assert "\n" not in payload["error"]
        assert "Traceback" not in payload["error"]
        return payload["error"]


def request(address, body=None, headers=JSON, method=None):
    """Send a request; an object is sent as JSON, bytes unchanged."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    prepared = urllib.request.Request(address, content, headers, method=method)
    try:
        with urllib.request.urlopen(prepared, timeout=60) as reply:
            return Reply(reply.status, dict(reply.headers), reply.read())
    except urllib.error.HTTPError as reply:
        return Reply(reply.code, dict(reply.headers), reply.read())


@contextmanager
def served(champion, limits=DEFAULT_LIMITS, uvicorn_options=MappingProxyType({}), **options):
    """Yield the address of a server that ends with the block."""
    suites = champion if isinstance(champion, Suites) else Suites(champion)
    app = create_app(suites, limits, **options)
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(app, **{**UVICORN, "timeout_graceful_shutdown": 2, **uvicorn_options}))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield address_of(listening, "127.0.0.1")
        finally:
            server.should_exit = True
            thread.join(20)
