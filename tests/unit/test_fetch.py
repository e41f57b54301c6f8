import gzip
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import requests
from loopback import Loopback, Page

from perfcast.io import read_json
from perfcast.sources._fetch import FetchError, Limits, fetch, open_address

BODY = np.random.default_rng(0).integers(0, 256, 100_000, dtype=np.uint8).tobytes()
OTHER = BODY[::-1]
LIMITS = Limits(connect=2.0, read=0.3, total=20.0, attempts=3, backoff=0.01, redirects=3)


@pytest.fixture
def internet(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Loopback() as server:
        yield server


@pytest.fixture
def part(tmp_path) -> Path:
    return tmp_path / "file.part"


def get(url: str, part: Path, *, size: int | None = len(BODY), at_most: int = len(BODY), limits: Limits = LIMITS):
    return fetch(url, part, size=size, at_most=at_most, limits=limits, progress=lambda done, total: None)


def test_bytes_arrive_and_progress_is_told(internet, part):
    internet.pages["/a"] = Page(BODY)
    told = []
    pieced = fetch(
        internet.url("/a"),
        part,
        size=len(BODY),
        at_most=len(BODY),
        limits=LIMITS,
        progress=lambda *now: told.append(now),
    )
    assert part.read_bytes() == BODY
    assert not pieced
    assert told == sorted(told)
    assert told[-1] == (len(BODY), len(BODY))


def test_a_cut_download_goes_on_where_it_was_cut(internet, part):
    internet.pages["/a"] = Page(BODY, etag='"one"', cut_at=60_000, cuts=1)
    assert get(internet.url("/a"), part)
    assert part.read_bytes() == BODY
    first, second = internet.ranges()
    assert first is None
    start = int(second.removeprefix("bytes=").rstrip("-"))
    assert 0 < start <= 60_000
    assert internet.requests[1][1]["If-Range"] == '"one"'


def test_a_later_process_goes_on_too(internet, part):
    internet.pages["/a"] = Page(BODY, etag='"one"', cut_at=60_000, cuts=1)
    with pytest.raises(FetchError, match="cut after"):
        get(internet.url("/a"), part, limits=Limits(attempts=1, read=0.3))
    assert get(internet.url("/a"), part)
    assert part.read_bytes() == BODY
    assert internet.ranges()[1] is not None


def test_without_validator_the_range_is_asked_without_condition(internet, part):
    internet.pages["/a"] = Page(BODY, cut_at=60_000, cuts=1)
    assert get(internet.url("/a"), part)
    assert part.read_bytes() == BODY
    assert "If-Range" not in internet.requests[1][1]


def test_last_modified_serves_where_the_etag_is_weak(internet, part):
    when = "Mon, 01 Jan 2024 00:00:00 GMT"
    page = Page(BODY, etag='W/"one"', headers={"Last-Modified": when}, honours_if_range=False, cut_at=60_000, cuts=1)
    internet.pages["/a"] = page
    get(internet.url("/a"), part)
    assert internet.requests[1][1]["If-Range"] == when


def test_a_server_that_ignores_the_range_restarts_cleanly(internet, part):
    internet.pages["/a"] = Page(BODY, honours_range=False, cut_at=60_000, cuts=1)
    assert not get(internet.url("/a"), part)
    assert part.read_bytes() == BODY


@pytest.mark.parametrize("honours_if_range", [True, False])
def test_a_file_that_changed_between_parts_is_taken_anew(internet, part, honours_if_range):
    internet.pages["/a"] = Page(BODY, etag='"one"', cut_at=60_000, cuts=1)
    with pytest.raises(FetchError):
        get(internet.url("/a"), part, limits=Limits(attempts=1, read=0.3))
    internet.pages["/a"] = Page(OTHER, etag='"two"', honours_if_range=honours_if_range)
    assert not get(internet.url("/a"), part)
    assert part.read_bytes() == OTHER


def test_a_part_of_another_address_is_not_used(internet, part):
    internet.pages["/a"] = Page(OTHER, cut_at=60_000, cuts=1)
    with pytest.raises(FetchError):
        get(internet.url("/a"), part, limits=Limits(attempts=1, read=0.3))
    internet.pages["/b"] = Page(BODY)
    get(internet.url("/b"), part)
    assert part.read_bytes() == BODY
    assert read_json(part.with_suffix(".json"))["url"] == internet.url("/b")


def test_a_range_that_cannot_be_satisfied_restarts(internet, part):
    internet.pages["/a"] = Page(BODY, announces_length=False, cut_at=60_000, cuts=1)
    with pytest.raises(FetchError, match="ended after 60000 of 100000"):
        get(internet.url("/a"), part, limits=Limits(attempts=1, read=0.3))
    internet.pages["/a"] = Page(BODY[:50_000])
    get(internet.url("/a"), part)
    assert part.read_bytes() == BODY[:50_000]


def test_a_missing_page_is_not_asked_twice(internet, part):
    with pytest.raises(FetchError, match="HTTP status 404"):
        get(internet.url("/none"), part)
    assert len(internet.requests) == 1


def test_a_server_that_is_busy_is_asked_again(internet, part):
    internet.pages["/a"] = Page(BODY, failures=2)
    get(internet.url("/a"), part)
    assert part.read_bytes() == BODY


def test_a_server_that_stays_busy_is_given_up(internet, part):
    internet.pages["/a"] = Page(BODY, failures=99)
    with pytest.raises(FetchError, match="HTTP status 503"):
        get(internet.url("/a"), part)
    assert len(internet.requests) == LIMITS.attempts


def test_a_silent_server_is_given_up(internet, part):
    internet.pages["/a"] = Page(BODY, wait_before=1.0)
    with pytest.raises(FetchError, match=r"sent nothing for 0\.05 s"):
        get(internet.url("/a"), part, limits=Limits(read=0.05, attempts=2, backoff=0.01))
    assert len(internet.requests) == 2


def test_a_server_that_stalls_midway_is_resumed(internet, part):
    internet.pages["/a"] = Page(BODY, wait_between_chunks=0.2)
    with pytest.raises(FetchError, match="sent nothing"):
        get(internet.url("/a"), part, limits=Limits(read=0.05, attempts=1))
    internet.pages["/a"].wait_between_chunks = 0.0
    get(internet.url("/a"), part)
    assert part.read_bytes() == BODY


def test_a_server_that_drips_is_given_up_in_the_end(internet, part):
    internet.pages["/a"] = Page(BODY, wait_between_chunks=0.02)
    with pytest.raises(FetchError, match=r"not complete after 0\.2 s"):
        get(internet.url("/a"), part, limits=Limits(read=5.0, total=0.2, attempts=5))


def test_redirects_are_followed(internet, part):
    internet.pages["/old"] = Page(status=302, headers={"Location": "/new"})
    internet.pages["/new"] = Page(BODY)
    get(internet.url("/old"), part)
    assert part.read_bytes() == BODY


def test_a_redirect_loop_ends(internet, part):
    internet.pages["/a"] = Page(status=302, headers={"Location": "/b"})
    internet.pages["/b"] = Page(status=302, headers={"Location": "/a"})
    with pytest.raises(FetchError, match="redirects more than 3 times"):
        get(internet.url("/a"), part)


@pytest.mark.parametrize("target", ["http://example.org/a", "file:///etc/passwd", "ftp://127.0.0.1/a", "http://[bad/a"])
def test_a_redirect_out_of_https_is_refused(internet, part, target):
    internet.pages["/a"] = Page(status=302, headers={"Location": target})
    with pytest.raises(FetchError, match="not an https address"):
        get(internet.url("/a"), part)


def test_a_redirect_from_https_to_http_is_refused_even_to_this_machine(monkeypatch):
    monkeypatch.setattr("perfcast.sources._fetch._require_reachable", lambda url, seconds: None)
    answer = SimpleNamespace(is_redirect=True, headers={"Location": "http://127.0.0.1/a"}, close=lambda: None)
    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", lambda adapter, request, **options: answer)
    with pytest.raises(FetchError, match="not an https address"):
        open_address(requests.Session(), "https://example.org/a", {}, LIMITS)


def test_an_announced_huge_file_is_refused_unread(internet, part):
    internet.pages["/a"] = Page(BODY)
    with pytest.raises(FetchError, match="announces 100000 bytes, more than the 50 allowed"):
        get(internet.url("/a"), part, size=50, at_most=50)
    assert not part.exists() or part.stat().st_size == 0


def test_an_unannounced_huge_file_is_stopped(internet, part):
    internet.pages["/a"] = Page(BODY, announces_length=False)
    with pytest.raises(FetchError, match="more than the 50000 bytes allowed"):
        get(internet.url("/a"), part, size=None, at_most=50_000)
    assert not part.exists()


def test_a_content_encoding_is_neither_asked_for_nor_undone(internet, part):
    sent = gzip.compress(BODY)
    internet.pages["/a"] = Page(sent, headers={"Content-Encoding": "gzip"})
    get(internet.url("/a"), part, size=len(sent), at_most=len(sent))
    assert part.read_bytes() == sent
    assert internet.requests[0][1]["Accept-Encoding"] == "identity"


def test_a_part_that_is_whole_is_not_asked_for_again(internet, part):
    internet.pages["/a"] = Page(BODY)
    get(internet.url("/a"), part)
    get(internet.url("/a"), part)
    assert len(internet.requests) == 1


def test_a_closed_port_is_unreachable(part, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(FetchError, match=r"cannot connect to 127\.0\.0\.1") as caught:
            get(f"http://127.0.0.1:{taken.getsockname()[1]}/a", part)
    assert caught.value.unreachable


def test_a_name_that_does_not_resolve_is_unreachable_at_once(part, monkeypatch):
    asked = []

    def refuse(*args, **options):
        asked.append(args)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(FetchError, match=r"cannot connect to example\.invalid") as caught:
        get("https://example.invalid/a", part)
    assert caught.value.unreachable
    assert len(asked) == 1


def test_a_resolver_that_never_answers_is_left_behind(part, monkeypatch):
    answer = threading.Event()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: answer.wait(30) and [])
    with pytest.raises(FetchError, match="cannot connect"):
        get("https://example.invalid/a", part, limits=Limits(connect=0.1))
    assert not answer.is_set()
    answer.set()
