"""A web server on the loopback address that stands for the internet and misbehaves as it is told."""

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
    """What one path answers; `cuts` counts the answers that end after `cut_at` bytes, `failures` those with 503.

    `announced` is told as the length in place of the true one. Units: bytes, seconds.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: str | None = None
    announces_length: bool = True
    announced: str | None = None
    honours_range: bool = True
    honours_if_range: bool = True
    cut_at: int = 0
    cuts: int = 0
    failures: int = 0
    wait_before: float = 0.0
    wait_between_chunks: float = 0.0
    wait_in_head: float = 0.0
    chunk: int = CHUNK


class Loopback:
    """The server: `pages` by path, and `requests` with the headers of everything that was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def ranges(self) -> list[str | None]:
        """Return the Range header of every request."""
        return [headers.get("Range") for _, headers in self.requests]

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
            start = _start(page, self.headers.get("Range"), self.headers.get("If-Range"))
            if start > 0 and start >= len(page.body):
                self.send_error(416)
                return
            try:
                self._head(page, start)
                self._body(page, start)
            except OSError:
                self.close_connection = True

        def _head(self, page: Page, start: int) -> None:
            self.send_response(206 if start else page.status)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(page.body) - 1}/{len(page.body)}")
            if page.announces_length:
                self.send_header("Content-Length", page.announced or str(len(page.body) - start))
            if page.etag:
                self.send_header("ETag", page.etag)
            for name, value in page.headers.items():
                self.send_header(name, value)
            if page.wait_in_head:
                self._drip(page.wait_in_head)
            self.end_headers()

        def _drip(self, wait: float) -> None:
            head = b"".join(self._headers_buffer)
            self._headers_buffer = []
            for byte in head:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(wait)

        def _body(self, page: Page, start: int) -> None:
            end = len(page.body)
            if page.cuts:
                page.cuts -= 1
                end = page.cut_at
            for offset in range(start, end, page.chunk):
                self.wfile.write(page.body[offset : min(offset + page.chunk, end)])
                self.wfile.flush()
                time.sleep(page.wait_between_chunks)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _start(page: Page, span: str | None, condition: str | None) -> int:
    changed = page.honours_if_range and condition is not None and condition != page.etag
    if span is None or not page.honours_range or changed:
        return 0
    return int(span.removeprefix("bytes=").rstrip("-"))
