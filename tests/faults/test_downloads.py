"""Whatever a server does, a source is ingested byte-exact or told to be missing in one line, until it is repaired."""

import hashlib
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest
from loopback import Loopback, Page

from perfcast.io import TEMPORARY
from perfcast.sources import Limits, ingest, parse_source

GOOD = np.random.default_rng(0).integers(0, 256, 60_000, dtype=np.uint8).tobytes()
BAD = GOOD[:30_000] + bytes([GOOD[30_000] ^ 1]) + GOOD[30_001:]
LIMITS = Limits(connect=1.0, read=0.3, total=2.0, attempts=3, backoff=0.01, redirects=3)
ALLOWED = 5.0  # seconds beyond the limits, for a busy machine


def moved(to):
    return Page(status=302, headers={"Location": to})


SURVIVED = {
    "cut once": {"/a": Page(GOOD, etag='"1"', cut_at=20_000, cuts=1)},
    "cut twice, without a validator": {"/a": Page(GOOD, cut_at=20_000, cuts=2)},
    "cut, and no range served": {"/a": Page(GOOD, honours_range=False, cut_at=20_000, cuts=1)},
    "slow, within the limit": {"/a": Page(GOOD, wait_between_chunks=0.001)},
    "busy at first": {"/a": Page(GOOD, failures=2)},
    "redirected": {"/a": moved("/b"), "/b": moved("/c"), "/c": Page(GOOD)},
    "no length announced": {"/a": Page(GOOD, announces_length=False)},
    "all but the last byte": {"/a": Page(GOOD, cut_at=len(GOOD) - 1, cuts=1)},
    "a length that is no number": {"/a": Page(GOOD, announced="many")},
}  # fmt: skip
REFUSED = {
    "always cut": ({"/a": Page(GOOD, cut_at=20_000, cuts=99, honours_range=False)}, "was cut after"),
    "silent": ({"/a": Page(GOOD, wait_before=1.0)}, "sent nothing for"),
    "a head that drips": ({"/a": Page(GOOD, wait_in_head=0.1)}, "sent no whole answer within"),
    "a body that drips": ({"/a": Page(GOOD, wait_between_chunks=0.1, chunk=1)}, "not complete after 2 s"),
    "a bit that flipped": ({"/a": Page(BAD)}, "wrong checksum"),
    "a bit that flipped, cut as well": ({"/a": Page(BAD, cut_at=20_000, cuts=1)}, "wrong checksum"),
    "a page to log in": ({"/a": moved("/login"), "/login": Page(b"<html>please log in</html>")}, "wrong checksum"),
    "redirected in a circle": ({"/a": moved("/b"), "/b": moved("/a")}, "redirects more than 3 times"),
    "redirected to a file": ({"/a": moved("file:///etc/passwd")}, "not an https address"),
    "less announced than there is": ({"/a": Page(GOOD, announced="1000")}, "wrong checksum"),
    "far more announced": ({"/a": Page(GOOD, announced="999999999")}, "more than the 60000 allowed"),
    "more sent than declared": ({"/a": Page(GOOD + b"x", announces_length=False)}, "more than the 60000 bytes allowed"),
    "less sent than declared": ({"/a": Page(GOOD[:-1])}, "wrong checksum"),
    "nothing sent": ({"/a": Page(b"")}, "wrong checksum"),
}


@pytest.fixture
def world(monkeypatch, tmp_path):
    """A server and the folders of one machine; the source's own check is not what is tested."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    check = SimpleNamespace(check=lambda folder: None)
    monkeypatch.setattr("perfcast.sources._ingest.plugins.load", lambda package, name: check)
    with Loopback() as server:
        about = {key: f"the {key}" for key in ("title", "module", "licence", "terms", "citation", "homepage")}
        file = {
            "name": "a.bin",
            "sha256": hashlib.sha256(GOOD).hexdigest(),
            "bytes": len(GOOD),
            "url": server.url("/a"),
        }
        spec = parse_source("src", {**about, "files": [file]})

        def bring():
            places = {"cache": tmp_path / "cache", "mirrors": [], "embedded": tmp_path / "embedded"}
            return ingest(spec, tmp_path / "out", network=True, limits=LIMITS, **places)

        yield SimpleNamespace(server=server, bring=bring, out=tmp_path / "out", cache=tmp_path / "cache")


def assert_brought(world, result):
    assert result.status == "present"
    assert sorted(path.name for path in world.out.iterdir()) == ["a.bin", "manifest.json"]
    assert (world.out / "a.bin").read_bytes() == GOOD


@pytest.mark.parametrize("fault", SURVIVED)
def test_a_fault_that_passes_is_survived(world, fault):
    world.server.pages |= SURVIVED[fault]
    assert_brought(world, world.bring())


@pytest.mark.parametrize("fault", REFUSED)
def test_a_fault_that_stays_is_told_in_time_and_leaves_nothing(world, fault):
    pages, words = REFUSED[fault]
    world.server.pages |= pages
    began = time.monotonic()
    result = world.bring()
    longest = max(LIMITS.total, LIMITS.attempts * (LIMITS.connect + LIMITS.read))
    assert time.monotonic() - began < longest + ALLOWED
    assert result.status == "missing"
    assert words in result.line
    assert "\n" not in result.line
    assert [path.name for path in world.out.iterdir()] == ["manifest.json"]
    assert json.loads((world.out / "manifest.json").read_text())["files"] == []
    assert not [path for path in world.out.parent.rglob(".*") if TEMPORARY.match(path.name)]
    assert not [path for path in (world.cache / "sha256").rglob("*") if path.is_file()], (
        "nothing wrong is kept as right"
    )
    world.server.pages |= {"/a": Page(GOOD)}
    assert_brought(world, world.bring())
