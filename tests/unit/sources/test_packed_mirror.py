"""Files that lie packed in a mirror are ingested, and nothing else of an archive is written."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfcast.sources.ingestion import ingest_source
from perfcast.sources.locations import tabulate_sources
from perfcast.sources.source_spec import parse_source

NAMES = ("data/a.csv", "b.csv")
FIRST, GOOD = b"first bytes\n" * 500, b"good bytes\n" * 500
WHOLE = dict(zip(NAMES, (FIRST, GOOD), strict=True))


@pytest.fixture(autouse=True)
def no_checks(monkeypatch):
    module = SimpleNamespace(check=lambda folder: None)
    monkeypatch.setattr("perfcast.sources.ingestion.plugins.load", lambda *names: module)


def make_spec():
    about = {key: f"the {key}" for key in ("title", "module", "license", "terms", "citation", "homepage")}
    files = [
        {
            **{"name": Path(name).name, "sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)},
            **{"mirror": f"src/{name}", "url": "https://example.invalid/a"},
        }
        for name, body in WHOLE.items()
    ]
    return parse_source("src", {**about, "files": files})


def pack(mirror: Path, **members: bytes | str) -> Path:
    """Write the archive of the mirror: bytes are files, texts are links to that path."""
    path = mirror / "src" / "src.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


def ingest(tmp_path, *mirrors):
    places = {"cache": tmp_path / "cache", "mirrors": mirrors or [tmp_path / "mirror"], "embedded": tmp_path / "none"}
    return ingest_source(make_spec(), tmp_path / "out", network=False, **places)


def test_packed_files_are_ingested_and_cached(tmp_path):
    path = pack(tmp_path / "mirror", **WHOLE, other=b"not declared")
    result = ingest(tmp_path)
    assert (result.status, result.files[0].origin) == ("present", f"archive {path}")
    assert sorted(file.name for file in (tmp_path / "out").glob("*.csv")) == ["a.csv", "b.csv"]
    assert not list(tmp_path.rglob("other"))
    path.unlink()
    assert ingest(tmp_path).files[0].origin.startswith("cache")


def test_some_files_may_be_packed_and_others_not(tmp_path):
    pack(tmp_path / "mirror", **{NAMES[0]: FIRST})
    (tmp_path / "mirror" / "src" / "b.csv").write_bytes(GOOD)
    assert ingest(tmp_path).status == "present"


@pytest.mark.parametrize(
    "members",
    [
        {NAMES[0]: FIRST},
        {NAMES[0]: FIRST, NAMES[1]: GOOD[:-1]},
        {NAMES[0]: FIRST, NAMES[1]: GOOD + b"more"},
        {NAMES[0]: FIRST, NAMES[1]: "data/a.csv"},
        {NAMES[0]: FIRST, f"../{NAMES[1]}": GOOD},
        {NAMES[0]: FIRST, f"/{NAMES[1]}": GOOD},
    ],
    ids=["absent", "changed", "too long", "a link", "outside", "absolute"],
)
def test_a_file_that_is_not_as_declared_is_missing(tmp_path, members):
    pack(tmp_path / "mirror", **members)
    assert ingest(tmp_path).status == "missing"
    assert not list(tmp_path.rglob("b.csv"))


@pytest.mark.parametrize("length", [0, 10, 60])
def test_a_damaged_archive_is_as_none(tmp_path, length):
    path = pack(tmp_path / "mirror", **WHOLE)
    path.write_bytes(path.read_bytes()[:length])
    assert ingest(tmp_path).status == "missing"


def test_the_second_mirror_may_have_the_archive(tmp_path):
    pack(tmp_path / "second", **WHOLE)
    assert ingest(tmp_path, tmp_path / "mirror", tmp_path / "second").status == "present"


def test_the_table_of_sources_names_the_archive(tmp_path):
    places = {"cache": tmp_path / "cache", "mirrors": [tmp_path / "empty", tmp_path / "mirror"], "embedded": tmp_path}
    assert tabulate_sources([make_spec()], **places)[0]["location"].startswith("not on this machine")
    path = pack(tmp_path / "mirror", **WHOLE)
    row = tabulate_sources([make_spec()], **places)[0]
    assert row["location"] == f"archive {path}"
    assert row["size"] == "11.5 kB"
