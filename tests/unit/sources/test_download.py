"""Downloads from a server on the loopback address: byte-exact files, or one line with the reason and nothing left."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import requests
from ingestible import digest, file_conf, ingest, make_spec, names_in, read_manifest
from loopback import Page

from perfcast.sources.download import DownloadError, DownloadLimits, download_file
from perfcast.sources.source_spec import SourceFile
from perfcast.utils.errors import UserError
from perfcast.utils.io import TEMPORARY

BODY = np.random.default_rng(0).integers(0, 256, 60_000, dtype=np.uint8).tobytes()
FLIPPED = BODY[:30_000] + bytes([BODY[30_000] ^ 1]) + BODY[30_001:]
LIMITS = DownloadLimits(connect=1.0, read=0.3, total=2.0, retries=2)
GRACE = 5.0  # seconds beyond the limits, for a busy machine


def redirect(location):
    return Page(status=302, headers={"Location": location})


TRANSIENT_FAULTS = {
    "cut once": (2, {"/a": Page(BODY, cut_at=20_000, cuts=1)}),
    "busy at first": (3, {"/a": Page(BODY, failures=2)}),
    "redirected": (3, {"/a": redirect("/b"), "/b": redirect("/c"), "/c": Page(BODY)}),
}
"""Pages by path, and how many requests they take."""
PERMANENT_FAULTS = {
    "always cut": ({"/a": Page(BODY, cut_at=20_000, cuts=99)}, "the connection was cut"),
    "no such page": ({}, "HTTP status 404"),
    "silent": ({"/a": Page(BODY, wait_before=1.0)}, "sent nothing for 0.3 s"),
    "a body that drips": ({"/a": Page(BODY, wait_between_chunks=0.1)}, "not complete after 2 s"),
    "a bit that flipped": ({"/a": Page(FLIPPED)}, "wrong checksum"),
    "redirected in a circle": ({"/a": redirect("/b"), "/b": redirect("/a")}, "redirects too often"),
    "redirected to a file": ({"/a": redirect("file:///etc/passwd")}, "not an https address"),
    "far more announced": ({"/a": Page(BODY, announced="999999999")}, "more than the 60000 declared"),
    "more sent than declared": (
        {"/a": Page(BODY + b"x", announces_length=False)},
        "more than the 60000 bytes declared",
    ),
}
REFUSED_AT_ONCE = {name for name, (_, message) in PERMANENT_FAULTS.items() if "not an https" in message}
REFUSED_AT_ONCE |= {"no such page", "a body that drips", "far more announced"}


def ingest_page(internet, folders):
    return ingest(make_spec(file_conf(BODY, url=internet.url("/a"))), folders, network=True, limits=LIMITS)


def assert_ingested(folders, result):
    assert result.status == "present"
    assert names_in(folders.out) == ["a.csv", "digests.sha256", "manifest.json"]
    assert (folders.out / "a.csv").read_bytes() == BODY


@pytest.mark.parametrize("fault", TRANSIENT_FAULTS)
def test_transient_faults_are_survived(internet, folders, fault):
    count, pages = TRANSIENT_FAULTS[fault]
    internet.pages |= pages
    assert_ingested(folders, ingest_page(internet, folders))
    assert len(internet.requests) == count


@pytest.mark.parametrize("fault", PERMANENT_FAULTS)
def test_permanent_faults_are_reported_in_time_and_leave_nothing(internet, folders, fault):
    pages, message = PERMANENT_FAULTS[fault]
    internet.pages |= pages
    began = time.monotonic()
    result = ingest_page(internet, folders)
    longest = max(LIMITS.total, (1 + LIMITS.retries) * (LIMITS.connect + LIMITS.read))
    assert time.monotonic() - began < longest + GRACE
    assert result.status == "missing"
    assert message in result.summary
    assert "\n" not in result.summary
    assert fault not in REFUSED_AT_ONCE or len(internet.requests) == 1
    assert names_in(folders.out) == ["digests.sha256", "manifest.json"]
    assert read_manifest(folders)["files"] == []
    assert not [path for path in folders.out.parent.rglob(".*") if TEMPORARY.match(path.name)]
    assert not [path for path in (folders.cache / "sha256").rglob("*") if path.is_file()]
    internet.pages |= {"/a": Page(BODY)}
    assert_ingested(folders, ingest_page(internet, folders))


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "cache" / "file"


def download(url: str, path: Path):
    values = {"name": "file", "sha256": digest(BODY), "url": url, "bytes": len(BODY)}
    download_file(SourceFile.model_validate(values), path, LIMITS)


def test_a_file_is_written_for_all_users_and_is_not_downloaded_again(internet, target):
    internet.pages["/a"] = Page(BODY)
    download(internet.url("/a"), target)
    assert target.read_bytes() == BODY
    assert names_in(target.parent) == ["file"]
    assert target.stat().st_mode & 0o777 == 0o644
    download(internet.url("/a"), target)
    assert [headers["Accept-Encoding"] for _, headers in internet.requests] == ["identity"]
    target.write_bytes(BODY[::-1])
    download(internet.url("/a"), target)
    assert target.read_bytes() == BODY, "one with another checksum is replaced"


def test_two_at_the_same_time_download_once(internet, target):
    internet.pages["/a"] = Page(BODY, wait_between_chunks=0.002)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: download(internet.url("/a"), target), range(2)))
    assert target.read_bytes() == BODY
    assert len(internet.requests) == 1


def test_a_redirect_from_https_to_loopback_http_is_refused(monkeypatch, target):
    def send(adapter, request, **options):
        response = requests.Response()
        response.status_code, response.url, response.request = 302, request.url, request
        response.headers["Location"] = "http://127.0.0.1/a"
        response._content = b""
        return response

    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", send)
    with pytest.raises(DownloadError, match="not an https address"):
        download("https://example.org/a", target)


def test_a_closed_port_is_unreachable(target, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(DownloadError, match=r"cannot connect to 127\.0\.0\.1") as caught:
            download(f"http://127.0.0.1:{bound.getsockname()[1]}/a", target)
    assert caught.value.unreachable


def test_a_folder_that_cannot_be_written_is_told(internet, tmp_path):
    internet.pages["/a"] = Page(BODY)
    (tmp_path / "cache").write_text("a file in place of the folder")
    with pytest.raises(UserError, match="the cache must be writable"):
        download(internet.url("/a"), tmp_path / "cache" / "file")
