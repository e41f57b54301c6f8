"""Ingestion from a faulty server: byte-exact files, or one line with the reason."""

import hashlib
import json
import time
from types import SimpleNamespace

import numpy as np
import pooch
import pytest
from loopback import Loopback, Page

from perfcast.sources.download import DownloadLimits
from perfcast.sources.ingestion import ingest_source
from perfcast.sources.source_spec import parse_source
from perfcast.utils.io import TEMPORARY

GOOD = np.random.default_rng(0).integers(0, 256, 60_000, dtype=np.uint8).tobytes()
BAD = GOOD[:30_000] + bytes([GOOD[30_000] ^ 1]) + GOOD[30_001:]
LIMITS = DownloadLimits(connect=1.0, read=0.3, total=2.0, retries=2)
GRACE = 5.0  # seconds beyond the limits, for a busy machine


def redirect(location):
    return Page(status=302, headers={"Location": location})


TRANSIENT_FAULTS = {
    "cut once": {"/a": Page(GOOD, cut_at=20_000, cuts=1)},
    "cut twice": {"/a": Page(GOOD, cut_at=20_000, cuts=2)},
    "slow, within the limit": {"/a": Page(GOOD, wait_between_chunks=0.001)},
    "busy at first": {"/a": Page(GOOD, failures=2)},
    "redirected": {"/a": redirect("/b"), "/b": redirect("/c"), "/c": Page(GOOD)},
    "no length announced": {"/a": Page(GOOD, announces_length=False)},
    "all but the last byte": {"/a": Page(GOOD, cut_at=len(GOOD) - 1, cuts=1)},
}  # fmt: skip
PERMANENT_FAULTS = {
    "always cut": ({"/a": Page(GOOD, cut_at=20_000, cuts=99)}, "the connection was cut"),
    "silent": ({"/a": Page(GOOD, wait_before=1.0)}, "sent nothing for"),
    "a body that drips": ({"/a": Page(GOOD, wait_between_chunks=0.1)}, "not complete after 2 s"),
    "a length that is no number": (
        {"/a": Page(GOOD, announced="many")},
        "Content-Length of the server is not a number",
    ),
    "a bit that flipped": ({"/a": Page(BAD)}, "wrong checksum"),
    "a bit that flipped, cut as well": ({"/a": Page(BAD, cut_at=20_000, cuts=1)}, "wrong checksum"),
    "a page to log in": ({"/a": redirect("/login"), "/login": Page(b"<html>please log in</html>")}, "wrong checksum"),
    "redirected in a circle": ({"/a": redirect("/b"), "/b": redirect("/a")}, "redirects too often"),
    "redirected to a file": ({"/a": redirect("file:///etc/passwd")}, "not an https address"),
    "less announced than there is": ({"/a": Page(GOOD, announced="1000")}, "wrong checksum"),
    "far more announced": ({"/a": Page(GOOD, announced="999999999")}, "more than the 60000 declared"),
    "more sent than declared": (
        {"/a": Page(GOOD + b"x", announces_length=False)},
        "more than the 60000 bytes declared",
    ),
    "less sent than declared": ({"/a": Page(GOOD[:-1])}, "wrong checksum"),
    "nothing sent": ({"/a": Page(b"")}, "wrong checksum"),
}


@pytest.fixture
def world(monkeypatch, tmp_path):
    """Server and folders of one machine; the check of the source accepts everything."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    check = SimpleNamespace(check=lambda folder: None)
    monkeypatch.setattr("perfcast.sources.ingestion.plugins.load", lambda *names: check)
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda seconds: None))
    with Loopback() as server:
        about = {key: f"the {key}" for key in ("title", "module", "license", "terms", "citation", "homepage")}
        file = {
            "name": "a.bin",
            "sha256": hashlib.sha256(GOOD).hexdigest(),
            "bytes": len(GOOD),
            "url": server.url("/a"),
        }
        spec = parse_source("src", {**about, "files": [file]})

        def ingest():
            folders = {"cache": tmp_path / "cache", "mirrors": [], "embedded": tmp_path / "embedded"}
            return ingest_source(spec, tmp_path / "out", network=True, limits=LIMITS, **folders)

        yield SimpleNamespace(server=server, ingest=ingest, out=tmp_path / "out", cache=tmp_path / "cache")


def assert_ingested(world, result):
    assert result.status == "present"
    assert sorted(path.name for path in world.out.iterdir()) == ["a.bin", "digests.sha256", "manifest.json"]
    assert (world.out / "a.bin").read_bytes() == GOOD


@pytest.mark.reliability("a download that fails or is cut")
@pytest.mark.parametrize("fault", TRANSIENT_FAULTS)
def test_ingest_source_survives_transient_faults(world, fault):
    world.server.pages |= TRANSIENT_FAULTS[fault]
    assert_ingested(world, world.ingest())


@pytest.mark.reliability("a download that fails or is cut")
@pytest.mark.parametrize("fault", PERMANENT_FAULTS)
def test_ingest_source_reports_permanent_faults_in_time_and_leaves_nothing(world, fault):
    pages, message = PERMANENT_FAULTS[fault]
    world.server.pages |= pages
    began = time.monotonic()
    result = world.ingest()
    longest = max(LIMITS.total, (1 + LIMITS.retries) * (LIMITS.connect + LIMITS.read))
    assert time.monotonic() - began < longest + GRACE
    assert result.status == "missing"
    assert message in result.summary
    assert "\n" not in result.summary
    assert sorted(path.name for path in world.out.iterdir()) == ["digests.sha256", "manifest.json"]
    assert json.loads((world.out / "manifest.json").read_text())["files"] == []
    assert not [path for path in world.out.parent.rglob(".*") if TEMPORARY.match(path.name)]
    assert not [path for path in (world.cache / "sha256").rglob("*") if path.is_file()]
    world.server.pages |= {"/a": Page(GOOD)}
    assert_ingested(world, world.ingest())
