"""Download one file: bounded in size and time, resumed after a cut, over https."""

from __future__ import annotations

import queue
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from perfcast import __version__
from perfcast.errors import UserError
from perfcast.io import read_object, write_json
from perfcast.sources.base import is_allowed_url

if TYPE_CHECKING:
    import requests

Progress = Callable[[int, int | None], None]
"""Called with the bytes done and the bytes in all, where known."""

_CHUNK = 16 * 1024
_RETRIED_STATUSES = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Limits:
    """Bounds of one download. Units: seconds, except the counts `attempts` and `redirects`."""

    connect: float = 4.0
    read: float = 20.0
    total: float = 900.0
    attempts: int = 4
    backoff: float = 0.5
    redirects: int = 5


class FetchError(Exception):
    """Why an address did not give its file; `unreachable` when there was no connection at all."""

    def __init__(self, fact: str, *, retry: bool = False, unreachable: bool = False) -> None:
        super().__init__(fact)
        self.retry, self.unreachable = retry, unreachable


def fetch(
    url: str, part: Path, *, size: int | None, at_most: int, limits: Limits | None = None, progress: Progress
) -> bool:
    """Download `url` to `part`, going on from what an earlier try left there.

    Returns True when the bytes came from more than one response, so that a wrong checksum may be the fault of a file
    that changed between them. Bytes are taken as sent: a Content-Encoding is neither asked for nor undone.
    Raises: FetchError.
    """
    import requests

    limits = limits or Limits()
    deadline = time.monotonic() + limits.total
    with requests.Session() as session:
        session.headers.update({"User-Agent": f"perfcast/{__version__}", "Accept-Encoding": "identity"})
        attempt = 0
        while True:
            try:
                return _Download(session, url, part, size, at_most, limits, deadline, progress).run()
            except FetchError as error:
                attempt += 1
                if not error.retry or attempt >= limits.attempts or time.monotonic() > deadline:
                    raise
            time.sleep(limits.backoff * 2 ** (attempt - 1))


def notes_path(part: Path) -> Path:
    """Return the path of what is remembered beside an unfinished download, so that it can be resumed."""
    return part.with_suffix(".json")


@dataclass
class _Download:
    """One attempt at one file."""

    session: requests.Session
    url: str
    part: Path
    size: int | None
    at_most: int
    limits: Limits
    deadline: float
    progress: Progress

    @property
    def notes(self) -> Path:
        """What the server said of the file when the part was begun: address and validator."""
        return notes_path(self.part)

    def run(self) -> bool:
        start = self._resumable()
        if start and start == self.size:
            return True
        headers = {"Range": f"bytes={start}-"} if start else {}
        validator = self._validator()
        if start and validator:
            headers["If-Range"] = validator
        response = open_address(self.session, self.url, headers, self.limits)
        try:
            start = self._begin(response, start)
            self._receive(response, start)
        finally:
            response.close()
        return start > 0

    def _resumable(self) -> int:
        """Return how many bytes are there to go on from; a part of another address or too long is dropped."""
        if not self.part.exists():
            return 0
        length = self.part.stat().st_size
        if self._noted().get("url") != self.url or length > self.at_most:
            self.part.unlink()
            return 0
        return length

    def _validator(self) -> str | None:
        return self._noted().get("validator") if self.part.exists() else None

    def _noted(self) -> dict[str, str | None]:
        """Return what the server said when the part was begun; nothing where no whole note of it is there."""
        try:
            noted = read_object(self.notes)
        except (OSError, UserError):
            return {}
        return {key: value for key, value in noted.items() if value is None or isinstance(value, str)}

    def _begin(self, response: requests.Response, start: int) -> int:
        """Check the answer's head and return the offset at which its body belongs."""
        if response.status_code == 416 and start:
            self.part.unlink()
            raise FetchError("the server cannot go on from where the download was cut", retry=True)
        if response.status_code == 206 and start:
            span = re.match(rf"bytes {start}-\d+/", response.headers.get("Content-Range", ""))
            if span is None or _validator_of(response) != self._validator():
                self.part.unlink()
                raise FetchError("the server went on from another place or with another file", retry=True)
        elif response.status_code == 200:
            start = 0
            self.part.write_bytes(b"")
            write_json(self.notes, {"url": self.url, "validator": _validator_of(response)})
        else:
            status = f"HTTP status {response.status_code} {response.reason or ''}".strip()
            raise FetchError(status, retry=response.status_code in _RETRIED_STATUSES)
        announced = response.headers.get("Content-Length", "")
        if announced.isdecimal() and start + int(announced) > self.at_most:
            raise FetchError(f"it announces {start + int(announced)} bytes, more than the {self.at_most} allowed")
        return start

    def _receive(self, response: requests.Response, start: int) -> None:
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        done = start
        try:
            with self.part.open("ab") as file:
                # what is there, however little: to wait for a whole chunk could take longer than all that is allowed
                while chunk := response.raw.read1(_CHUNK, decode_content=False):
                    done += len(chunk)
                    if done > self.at_most:
                        break
                    file.write(chunk)
                    self.progress(done, self.size)
                    if time.monotonic() > self.deadline:
                        raise FetchError(f"not complete after {self.limits.total:g} s ({done} bytes came)")
        except ReadTimeoutError:
            raise FetchError(f"the server sent nothing for {self.limits.read:g} s", retry=True)
        except HTTPError:
            raise FetchError(f"the connection was cut after {done} bytes", retry=True)
        if done > self.at_most:
            self.part.unlink()
            raise FetchError(f"it sends more than the {self.at_most} bytes allowed")
        whole = "Content-Length" in response.headers
        if self.size is not None and done < self.size and not whole:
            raise FetchError(f"the connection ended after {done} of {self.size} bytes", retry=True)


def open_address(session: requests.Session, url: str, headers: dict[str, str], limits: Limits) -> requests.Response:
    """Open `url` for reading, following redirects to allowed addresses only.

    The session's own handling of redirects is passed by: it reads the whole body of each, however long.
    Raises: FetchError.
    """
    import requests

    for _ in range(limits.redirects + 1):
        _require_reachable(url, limits.connect)
        try:
            request = session.prepare_request(requests.Request("GET", url, headers=headers))
            settings: dict[str, Any] = dict(session.merge_environment_settings(url, {}, True, None, None))
            adapter = session.get_adapter(url)
            send = partial(adapter.send, request, timeout=(limits.connect, limits.read), **settings)
            response = _within(limits.connect + limits.read, send)
        except requests.exceptions.SSLError:
            raise FetchError(f"the certificate of {urlsplit(url).hostname} is not trusted")
        except requests.exceptions.ReadTimeout:
            raise FetchError(f"the server sent nothing for {limits.read:g} s", retry=True)
        except requests.exceptions.RequestException as error:
            raise FetchError(f"the connection failed ({type(error).__name__})", retry=True)
        if not response.is_redirect:
            return response
        response.close()
        url = _redirected(url, response.headers["Location"])
    raise FetchError(f"it redirects more than {limits.redirects} times")


def _within(seconds: float, send: Callable[[], requests.Response]) -> requests.Response:
    """Return the answer once its head is whole, giving up after so many seconds.

    A time-out of the socket begins anew with every byte, so a head that drips would hold this up for as long as the
    server likes. It is read in a thread that can be left behind.
    """
    answers: queue.SimpleQueue[requests.Response | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(send())
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise FetchError(f"the server sent no whole answer within {seconds:g} s", retry=True)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _redirected(url: str, location: str) -> str:
    """Return the address a redirect leads to, if it is an allowed one and no step down from https."""
    try:
        target = urljoin(url, location)
    except ValueError:
        target = ""
    if not is_allowed_url(target) or (urlsplit(url).scheme, urlsplit(target).scheme) == ("https", "http"):
        raise FetchError(f"it redirects to {location:.200}, which is not an https address")
    return target


def _require_reachable(url: str, seconds: float) -> None:
    """Fail within `seconds` when no connection can be made, be it to the host or to the proxy in its place.

    The resolver knows no time-out of its own and may block for a minute on a machine without network, so it is asked
    in a thread that can be left behind.
    """
    from requests.utils import get_environ_proxies, prepend_scheme_if_needed, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    parts = urlsplit(prepend_scheme_if_needed(proxy, "http") if proxy else url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    answered = threading.Event()

    def probe() -> None:
        if _answers(host, port, seconds / 2):
            answered.set()

    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    thread.join(seconds)
    if not answered.is_set():
        raise FetchError(f"cannot connect to {host}", unreachable=True)


def _answers(host: str, port: int, seconds: float) -> bool:
    """Say whether a connection can be made, trying the first address of each family (IPv6 may be a dead end)."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, address in {family: address for family, _, _, _, address in reversed(found)}.items():
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            if connection.connect_ex(address) == 0:
                return True
    return False


def _validator_of(response: requests.Response) -> str | None:
    """Return what identifies the file's version: a strong ETag, else Last-Modified (a weak ETag cannot)."""
    tag: str | None = response.headers.get("ETag")
    if tag and not tag.startswith("W/"):
        return tag
    return response.headers.get("Last-Modified")
