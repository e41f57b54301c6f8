"""download_file: what arrives, what is retried, what is refused, against a server on the loopback address."""

import hashlib
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pooch
import pytest
import requests
from loopback import Loopback, Page

from perfcast.sources.download import DownloadError, DownloadLimits, download_file
from perfcast.sources.source_spec import SourceFile
from perfcast.utils.errors import UserError

BODY = np.random.default_rng(0).integers(0, 256, 100_000, dtype=np.uint8).tobytes()
LIMITS = DownloadLimits(connect=2.0, read=0.3, total=20.0, retries=2)


@pytest.fixture
def internet(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda seconds: None))
    with Loopback() as server:
        yield server


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "cache" / "file"


def download(url: str, path: Path, *, body: bytes = BODY, max_bytes: int = len(BODY), limits=LIMITS, progress=None):
    sizes = {"bytes": max_bytes} if max_bytes == len(body) else {"max_bytes": max_bytes}
    file = SourceFile.model_validate({"name": "file", "sha256": hashlib.sha256(body).hexdigest(), "url": url, **sizes})
    download_file(file, path, limits, progress or (lambda name, done, total: None))


def test_download_file_writes_the_bytes_and_reports_progress(internet, target):
    internet.pages["/a"] = Page(BODY)
    reports = []
    download(internet.url("/a"), target, progress=lambda *report: reports.append(report))
    assert target.read_bytes() == BODY
    assert reports == sorted(reports)
    assert reports[-1] == ("file", len(BODY), len(BODY))
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_download_file_makes_a_file_that_other_users_can_read(internet, target):
    internet.pages["/a"] = Page(BODY)
    download(internet.url("/a"), target)
    assert target.stat().st_mode & 0o777 == 0o644


def test_download_file_skips_a_file_that_is_there(internet, target):
    internet.pages["/a"] = Page(BODY)
    download(internet.url("/a"), target)
    download(internet.url("/a"), target)
    assert len(internet.requests) == 1


def test_download_file_downloads_once_for_two_at_the_same_time(internet, target):
    internet.pages["/a"] = Page(BODY, wait_between_chunks=0.002)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: download(internet.url("/a"), target), range(2)))
    assert target.read_bytes() == BODY
    assert len(internet.requests) == 1


def test_ingestion_imports_the_download_libraries_when_needed_only():
    code = "import sys, perfcast.sources.ingestion; print({'pooch', 'requests', 'urllib3'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_download_file_replaces_a_file_with_another_checksum(internet, target):
    internet.pages["/a"] = Page(BODY)
    target.parent.mkdir()
    target.write_bytes(BODY[::-1])
    download(internet.url("/a"), target)
    assert target.read_bytes() == BODY


@pytest.mark.parametrize("announces_length", [True, False])
def test_download_file_retries_after_a_cut(internet, target, announces_length):
    internet.pages["/a"] = Page(BODY, announces_length=announces_length, cut_at=60_000, cuts=1)
    download(internet.url("/a"), target)
    assert target.read_bytes() == BODY
    assert len(internet.requests) == 2


def test_download_file_retries_a_busy_server(internet, target):
    internet.pages["/a"] = Page(BODY, failures=2)
    download(internet.url("/a"), target)
    assert target.read_bytes() == BODY


def test_download_file_gives_up_a_server_that_stays_busy(internet, target):
    internet.pages["/a"] = Page(BODY, failures=99)
    with pytest.raises(DownloadError, match="HTTP status 503"):
        download(internet.url("/a"), target)
    assert len(internet.requests) == 1 + LIMITS.retries


def test_download_file_does_not_retry_a_missing_page(internet, target):
    with pytest.raises(DownloadError, match="HTTP status 404"):
        download(internet.url("/none"), target)
    assert len(internet.requests) == 1


def test_download_file_gives_up_a_server_that_is_cut_again_and_again(internet, target):
    internet.pages["/a"] = Page(BODY, cut_at=60_000, cuts=99)
    with pytest.raises(DownloadError, match="the connection was cut"):
        download(internet.url("/a"), target)
    assert not target.exists()


def test_download_file_gives_up_a_silent_server(internet, target):
    internet.pages["/a"] = Page(BODY, wait_before=1.0)
    with pytest.raises(DownloadError, match=r"sent nothing for 0\.05 s"):
        download(internet.url("/a"), target, limits=DownloadLimits(read=0.05, retries=1))
    assert len(internet.requests) == 2


def test_download_file_gives_up_a_server_that_stalls_midway(internet, target):
    internet.pages["/a"] = Page(BODY, wait_between_chunks=0.2)
    with pytest.raises(DownloadError, match="sent nothing"):
        download(internet.url("/a"), target, limits=DownloadLimits(read=0.05, retries=0))


def test_download_file_gives_up_a_slow_server_after_the_total_time(internet, target):
    internet.pages["/a"] = Page(BODY, wait_between_chunks=0.02)
    with pytest.raises(DownloadError, match=r"not complete after 0\.2 s"):
        download(internet.url("/a"), target, limits=DownloadLimits(read=5.0, total=0.2, retries=4))
    assert len(internet.requests) == 1


def test_download_file_follows_redirects(internet, target):
    internet.pages["/old"] = Page(status=302, headers={"Location": "/new"})
    internet.pages["/new"] = Page(BODY)
    download(internet.url("/old"), target)
    assert target.read_bytes() == BODY


def test_download_file_ends_a_redirect_loop(internet, target):
    internet.pages["/a"] = Page(status=302, headers={"Location": "/b"})
    internet.pages["/b"] = Page(status=302, headers={"Location": "/a"})
    with pytest.raises(DownloadError, match="redirects too often"):
        download(internet.url("/a"), target, limits=DownloadLimits(retries=0))


@pytest.mark.parametrize(
    "location", ["http://example.org/a", "file:///etc/passwd", "ftp://127.0.0.1/a", "http://[bad/a"]
)
def test_download_file_refuses_a_redirect_out_of_https(internet, target, location):
    internet.pages["/a"] = Page(status=302, headers={"Location": location})
    with pytest.raises(DownloadError, match="not an https address"):
        download(internet.url("/a"), target)
    assert len(internet.requests) == 1


def test_download_file_refuses_a_redirect_from_https_to_loopback_http(monkeypatch, target):
    def send(adapter, request, **options):
        response = requests.Response()
        response.status_code, response.url, response.request = 302, request.url, request
        response.headers["Location"] = "http://127.0.0.1/a"
        response._content = b""
        return response

    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", send)
    with pytest.raises(DownloadError, match="not an https address"):
        download("https://example.org/a", target)


def test_download_file_refuses_an_announced_huge_file_unread(internet, target):
    internet.pages["/a"] = Page(BODY)
    with pytest.raises(DownloadError, match="announces 100000 bytes, more than the 50 declared"):
        download(internet.url("/a"), target, max_bytes=50)
    assert list(target.parent.iterdir()) == []


def test_download_file_stops_an_unannounced_huge_file(internet, target):
    internet.pages["/a"] = Page(BODY, announces_length=False)
    with pytest.raises(DownloadError, match="more than the 50000 bytes declared"):
        download(internet.url("/a"), target, max_bytes=50_000)
    assert list(target.parent.iterdir()) == []


def test_download_file_does_not_ask_for_a_content_encoding(internet, target):
    internet.pages["/a"] = Page(BODY)
    download(internet.url("/a"), target)
    assert internet.requests[0][1]["Accept-Encoding"] == "identity"


def test_download_file_reports_a_closed_port_as_unreachable(target, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(DownloadError, match=r"cannot connect to 127\.0\.0\.1") as caught:
            download(f"http://127.0.0.1:{bound.getsockname()[1]}/a", target)
    assert caught.value.unreachable


def test_download_file_reports_an_unknown_host_as_unreachable_without_retries(target, monkeypatch):
    lookups = []

    def refuse(*args, **options):
        lookups.append(args)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(DownloadError, match=r"cannot connect to example\.invalid") as caught:
        download("https://example.invalid/a", target)
    assert caught.value.unreachable
    assert len(lookups) == 1


def test_download_file_reports_a_folder_that_cannot_be_written(internet, tmp_path):
    internet.pages["/a"] = Page(BODY)
    (tmp_path / "cache").write_text("a file in place of the folder")
    with pytest.raises(UserError, match="the cache must be writable"):
        download(internet.url("/a"), tmp_path / "cache" / "file")
