"""Download of one file with pooch: checksum, cache and retries are pooch's, the limits and messages are added here."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from perfcast import __version__
from perfcast.sources.source_spec import SourceFile, is_allowed_url
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    import requests

_TRANSIENT_STATUSES = {408, 425, 429}
_HEADERS = {"User-Agent": f"perfcast/{__version__}", "Accept-Encoding": "identity"}


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


def download_file(file: SourceFile, path: Path, limits: DownloadLimits) -> None:
    """Download a file to `path` unless it is already there, with its checksum; a live file has none.

    The bytes get their name only after the checksum was verified. Transient failures and wrong checksums are retried: a
    `DownloadError` ends the retries of pooch, and a `requests` exception starts the next one. A second process that
    wants the same file waits for the first one and finds the file there.
    Raises: DownloadError; UserError when the folder of `path` cannot be written.
    """
    import pooch
    import requests

    deadline = time.monotonic() + limits.total

    def check(response: requests.Response, **_: Any) -> None:
        _check_response(response, file.max_bytes)

    def transfer(url: str, output: str, _: Any) -> None:
        options: Any = {"timeout": (limits.connect, limits.read), "headers": _HEADERS, "hooks": {"response": check}}
        try:
            response = requests.get(url, stream=True, **options)
        except requests.exceptions.ConnectionError as error:
            if _is_unreachable(error):
                raise DownloadError(f"cannot connect to {urlsplit(url).hostname}", unreachable=True) from None
            raise
        written = 0
        with response, Path(output).open("wb") as target:
            response.raise_for_status()
            for chunk in response.iter_content(1024):
                written += len(chunk)
                if written > file.max_bytes:
                    raise DownloadError(f"the server sends more than the {file.max_bytes} bytes declared")
                if time.monotonic() > deadline:
                    raise DownloadError(f"not complete after {limits.total:g} s ({written} bytes)")
                target.write(chunk)
        Path(output).chmod(0o644)  # pooch made a private temporary file

    pooch.get_logger().setLevel("ERROR")  # the caller reports progress and failures
    registry = pooch.create(
        path=path.parent,
        base_url="",
        registry={path.name: file.sha256 and f"sha256:{file.sha256}"},
        urls={path.name: file.url},
        retry_if_failed=limits.retries,
    )
    try:
        with _lock_folder(path.parent):
            registry.fetch(path.name, downloader=transfer)
    except requests.exceptions.RequestException as error:
        raise DownloadError(_explain(error, limits)) from None
    except ValueError:
        raise DownloadError(f"wrong checksum, the sha256 is not {str(file.sha256)[:12]}…") from None
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


def _check_response(response: requests.Response, max_bytes: int) -> None:
    """Check the head of a response, those of redirects included, before its body is read. Raises: DownloadError.

    A redirect must lead to an allowed address and not from https to http.
    """
    if response.is_redirect:
        location = response.headers["Location"]
        try:
            target = urljoin(response.url, location)
        except ValueError:
            target = ""
        schemes = (urlsplit(response.url).scheme, urlsplit(target).scheme)
        if not is_allowed_url(target) or schemes == ("https", "http"):
            raise DownloadError(f"it redirects to {location:.200}, which is not an https address")
    elif 400 <= response.status_code < 500 and response.status_code not in _TRANSIENT_STATUSES:
        raise DownloadError(f"HTTP status {response.status_code} {response.reason}")
    announced = response.headers.get("Content-Length", "0")
    if not announced.isdecimal():
        raise DownloadError(f"the Content-Length of the server is not a number ({announced:.20})")
    if int(announced) > max_bytes:
        raise DownloadError(f"the server announces {announced} bytes, more than the {max_bytes} declared")


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
