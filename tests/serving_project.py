"""A server of the generated champion on a free port of this machine, in a thread of its own."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from perfcast.serving import create_app
from perfcast.serving.limits import DEFAULTS
from perfcast.serving.server import address_of, listen

JSON = {"Content-Type": "application/json"}
KNOWN = {"processor": "Xeon Gold 6148", "chips": 2}
WRONG = {"processor": "Xeon Gold 6148", "chips": 2, "cores": 500}
PLAIN = "?explain=false&neighbours=0"


@dataclass(frozen=True)
class Reply:
    """An answer of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The one line of an error, which is all that its body holds."""
        told = self.json()
        assert list(told) == ["error"]
        assert "\n" not in told["error"]
        assert "Traceback" not in told["error"]
        return told["error"]


def request(address, body=None, headers=JSON, method=None):
    """Ask; an object is sent as JSON, bytes as they are."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(address, content, headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return Reply(reply.status, dict(reply.headers), reply.read())
    except urllib.error.HTTPError as reply:
        return Reply(reply.code, dict(reply.headers), reply.read())


@contextmanager
def served(champion, limits=DEFAULTS, **options):
    """Give the address of a server that ends with the block."""
    app = create_app(champion, limits, **options)
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=2))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield address_of(listening, "127.0.0.1")
        finally:
            server.should_exit = True
            thread.join(20)
