"""Web server on the loopback address with configurable faults, in place of the internet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType

CHUNK = 1024


@dataclass
class Page:
    """Response of one path. `cuts` responses end after `cut_at` bytes, `failures` responses have the status 503.

    `announced` replaces the true length in Content-Length. Units: bytes, seconds.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    announces_length: bool = True
    announced: str | None = None
    cut_at: int = 0
    cuts: int = 0
    failures: int = 0
    wait_before: float = 0.0
    wait_between_chunks: float = 0.0


class Loopback:
    """Server with `pages` by path, and the paths and headers of all `requests`."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            loopback.requests.append((self.path, dict(self.headers)))
            page = loopback.pages.get(self.path, Page(b"no such page", status=404))
            time.sleep(page.wait_before)
            if page.failures:
                page.failures -= 1
                self.send_error(503)
                return
            try:
                self._head(page)
                self._body(page)
            except OSError:
                self.close_connection = True

        def _head(self, page: Page) -> None:
            self.send_response(page.status)
            if page.announces_length:
                self.send_header("Content-Length", page.announced or str(len(page.body)))
            for name, value in page.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _body(self, page: Page) -> None:
            end = len(page.body)
            if page.cuts:
                page.cuts -= 1
                end = page.cut_at
            for offset in range(0, end, CHUNK):
                self.wfile.write(page.body[offset : min(offset + CHUNK, end)])
                self.wfile.flush()
                time.sleep(page.wait_between_chunks)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
