"""Download of one file with pooch: checksum, cache and retries are pooch's, the limits and messages are added here."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from perfcast import __version__
from perfcast.sources.source_spec import is_allowed_url
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    import requests

Progress = Callable[[int, int | None], None]
"""Called with the downloaded bytes and, if known, the total bytes."""

_TRANSIENT_STATUSES = {408, 425, 429}


@dataclass(frozen=True)
class DownloadLimits:
    """Limits of one download.

    Units: seconds, except `retries`. `total` is checked whenever a kilobyte has arrived.
    """

    connect: float = 4.0
    read: float = 20.0
    total: float = 900.0
    retries: int = 3


class DownloadError(Exception):
    """Reason why an address did not provide its file; `unreachable` if there was no connection at all."""

    def __init__(self, reason: str, *, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


def download_file(
    url: str,
    sha256: str,
    path: Path,
    *,
    size: int | None,
    max_bytes: int,
    limits: DownloadLimits,
    progress: Progress,
) -> None:
    """Download `url` to `path` unless the file with this checksum is already there.

    The bytes get their name only after the checksum was verified. Transient failures and wrong checksums are retried.
    A second process that wants the same file waits for the first one and finds the file there.
    Raises: DownloadError; UserError when the folder of `path` cannot be written.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")  # the caller reports progress and failures
    registry = pooch.create(
        path=path.parent,
        base_url="",
        registry={path.name: f"sha256:{sha256}"},
        urls={path.name: url},
        retry_if_failed=limits.retries,
    )
    transfer = _Transfer(size, max_bytes, limits, time.monotonic() + limits.total, progress)
    try:
        with _lock_folder(path.parent):
            registry.fetch(path.name, downloader=transfer)
    except requests.exceptions.RequestException as error:
        raise DownloadError(_explain(error, limits)) from None
    except UserError:
        raise
    except ValueError:
        raise DownloadError(f"wrong checksum, the sha256 is not {sha256[:12]}…") from None
    except OSError as error:
        fact = f"{path.parent}: {error.strerror or error}"
        raise UserError("the cache must be writable", fact, "free space or set PERFCAST_CACHE to another folder")


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Create a folder if needed and lock it against other processes."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system has locks; then both processes download
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@dataclass
class _Transfer:
    """Downloader for pooch that stops at the limits and refuses unsafe redirects.

    A `DownloadError` ends the retries of pooch; a `requests` exception starts the next one.
    """

    size: int | None
    max_bytes: int
    limits: DownloadLimits
    deadline: float
    progress: Progress

    def __call__(self, url: str, output_file: str, pooch_instance: Any) -> None:
        """Write the content of `url` to the file named `output_file`."""
        import pooch
        import requests

        download = pooch.HTTPDownloader(
            timeout=(self.limits.connect, self.limits.read),
            headers={"User-Agent": f"perfcast/{__version__}", "Accept-Encoding": "identity"},
            hooks={"response": self._check_response},
        )
        try:
            with Path(output_file).open("wb") as file:
                download(url, _BoundedWriter(file, self), pooch_instance)
            Path(output_file).chmod(0o644)  # pooch made a private temporary file
        except requests.exceptions.ConnectionError as error:
            if _is_unreachable(error):
                raise DownloadError(f"cannot connect to {urlsplit(url).hostname}", unreachable=True) from None
            raise

    def _check_response(self, response: requests.Response, **_: Any) -> None:
        """Check the head of a response, those of redirects included, before its body is read."""
        if response.is_redirect:
            _check_redirect(response.url, response.headers["Location"])
        elif 400 <= response.status_code < 500 and response.status_code not in _TRANSIENT_STATUSES:
            raise DownloadError(f"HTTP status {response.status_code} {response.reason}")
        announced = response.headers.get("Content-Length", "0")
        if not announced.isdecimal():
            raise DownloadError(f"the Content-Length of the server is not a number ({announced:.20})")
        if int(announced) > self.max_bytes:
            raise DownloadError(f"the server announces {announced} bytes, more than the {self.max_bytes} declared")


@dataclass
class _BoundedWriter:
    """File for writing that counts its bytes, reports them, and raises DownloadError at the limits."""

    file: IO[bytes]
    transfer: _Transfer
    written: int = 0

    def write(self, chunk: bytes) -> None:
        """Write a chunk. Raises: DownloadError."""
        self.written += len(chunk)
        if self.written > self.transfer.max_bytes:
            raise DownloadError(f"the server sends more than the {self.transfer.max_bytes} bytes declared")
        if time.monotonic() > self.transfer.deadline:
            raise DownloadError(f"not complete after {self.transfer.limits.total:g} s ({self.written} bytes)")
        self.file.write(chunk)
        self.transfer.progress(self.written, self.transfer.size)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is closed."""


def _check_redirect(url: str, location: str) -> None:
    """Check that a redirect leads to an allowed address and not from https to http. Raises: DownloadError."""
    try:
        target = urljoin(url, location)
    except ValueError:
        target = ""
    if not is_allowed_url(target) or (urlsplit(url).scheme, urlsplit(target).scheme) == ("https", "http"):
        raise DownloadError(f"it redirects to {location:.200}, which is not an https address")


def _is_unreachable(error: requests.exceptions.ConnectionError) -> bool:
    """Return whether no connection was made: the name does not resolve, nothing listens, or the proxy fails."""
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError

    cause = getattr(error.args[0] if error.args else None, "reason", None)
    return isinstance(cause, (ConnectTimeoutError, NewConnectionError, ProxyError))


def _explain(error: requests.exceptions.RequestException, limits: DownloadLimits) -> str:
    """Return in one line why a request failed in its last retry."""
    from requests import exceptions
    from urllib3.exceptions import ReadTimeoutError

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code} {error.response.reason}"
    if isinstance(error, exceptions.ReadTimeout) or any(isinstance(cause, ReadTimeoutError) for cause in error.args):
        return f"the server sent nothing for {limits.read:g} s"
    if isinstance(error, exceptions.SSLError):
        return "the certificate of the server is not trusted"
    if isinstance(error, exceptions.TooManyRedirects):
        return "it redirects too often"
    if isinstance(error, (exceptions.ChunkedEncodingError, exceptions.ConnectionError)):
        return "the connection was cut"
    return f"the request failed ({type(error).__name__})"
