import hashlib
import json
import socket
from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest
from loopback import Loopback, Page

from perfcast.sources.download import DownloadLimits
from perfcast.sources.ingestion import ingest_source
from perfcast.sources.locations import cached_path, locate_source, present_sources, tabulate_sources
from perfcast.sources.source_spec import parse_source
from perfcast.utils.errors import UserError

LIMITS = DownloadLimits(connect=1.0, read=0.3, total=10.0, retries=1)
GOOD, BAD = b"good bytes\n" * 500, b"evil bytes\n" * 500


@pytest.fixture
def internet(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda seconds: None))
    with Loopback() as server:
        yield server


@pytest.fixture(autouse=True)
def checks(monkeypatch) -> list[list[str]]:
    """Replace the module of the source and record the files that each check received."""
    calls: list[list[str]] = []

    def check(folder: Path) -> None:
        calls.append(sorted(path.name for path in folder.iterdir() if path.is_file()))

    monkeypatch.setattr("perfcast.sources.ingestion.plugins.load", lambda *names: SimpleNamespace(check=check))
    return calls


@pytest.fixture
def folders(tmp_path):
    """Folders of one machine: results, cache, two mirrors, embedded data."""
    paths = {name: tmp_path / name for name in ("out", "cache", "mirror", "second", "embedded")}
    for name in ("mirror", "second", "embedded"):
        (paths[name] / "src").mkdir(parents=True)
    return SimpleNamespace(**paths)


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def file_conf(body: bytes = GOOD, name: str = "a.csv", url: str = "https://example.invalid/a") -> dict:
    return {"name": name, "sha256": digest(body), "bytes": len(body), "mirror": f"src/{name}", "url": url}


def make_spec(*files: dict, **more):
    about = {key: f"the {key}" for key in ("title", "module", "license", "terms", "citation", "homepage")}
    return parse_source("src", {**about, **({"files": list(files)} if files else {}), **more})


def ingest(spec, folders, *, network: bool = False, mirrors=None, **more):
    mirrors = [folders.mirror, folders.second] if mirrors is None else mirrors
    options = {"cache": folders.cache, "mirrors": mirrors, "embedded": folders.embedded, "limits": LIMITS}
    return ingest_source(spec, folders.out, network=network, **options, **more)


def write_to_cache(folders, body: bytes, under: str | None = None) -> Path:
    name = under or digest(body)
    path = folders.cache / "sha256" / name[:2] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def read_manifest(folders) -> dict:
    return json.loads((folders.out / "manifest.json").read_text())


def test_ingest_source_searches_cache_then_mirrors_then_address(internet, folders, checks):
    internet.pages["/a"] = Page(GOOD)
    spec = make_spec(file_conf(url=internet.url("/a")))

    assert ingest(spec, folders, network=True).files[0].origin == f"address {internet.url('/a')}"
    assert len(internet.requests) == 1
    assert ingest(spec, folders, network=True).files[0].origin == f"cache {folders.cache}"

    write_to_cache(folders, GOOD).unlink()
    (folders.second / "src/a.csv").write_bytes(GOOD)
    assert ingest(spec, folders, network=True).files[0].origin == f"mirror {folders.second}"
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    cached_path(folders.cache, digest(GOOD)).unlink()
    assert ingest(spec, folders, network=True).files[0].origin == f"mirror {folders.mirror}"
    assert len(internet.requests) == 1
    assert (folders.out / "a.csv").read_bytes() == GOOD
    assert checks == [["a.csv"]] * 4


def test_a_file_of_a_mirror_that_is_gone_later_is_kept_in_the_cache(folders):
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    ingest(make_spec(file_conf()), folders)
    (folders.mirror / "src/a.csv").unlink()
    result = ingest(make_spec(file_conf()), folders)
    assert (result.status, result.files[0].origin) == ("present", f"cache {folders.cache}")


@pytest.mark.reliability("a raw file changed after it was ingested")
def test_a_file_that_changed_after_its_ingestion_is_refused(folders):
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    spec = make_spec(file_conf())
    ingest(spec, folders)
    raw, name = folders.out.parent, folders.out.name
    assert present_sources(raw, [name]) == {name: folders.out}
    (folders.out / "a.csv").write_bytes(BAD)
    with pytest.raises(UserError, match="has changed since"):
        present_sources(raw, [name])
    (folders.out / "a.csv").unlink()
    with pytest.raises(UserError, match="is missing"):
        present_sources(raw, [name])


def test_ingest_source_writes_the_declared_files_and_the_manifest_only(folders):
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    (folders.mirror / "src/unasked.csv").write_bytes(BAD)
    folders.out.mkdir()
    (folders.out / "stale.csv").write_bytes(BAD)
    ingest(make_spec(file_conf()), folders)
    assert sorted(path.name for path in folders.out.iterdir()) == ["a.csv", "digests.sha256", "manifest.json"]


def test_manifest_is_equal_from_every_origin_and_contains_no_path(internet, folders, tmp_path):
    internet.pages["/a"] = Page(GOOD)
    spec = make_spec(file_conf(url=internet.url("/a")))
    written = []
    for origin in ("address", "cache", "mirror"):
        if origin == "mirror":
            (folders.mirror / "src/a.csv").write_bytes(GOOD)
            write_to_cache(folders, GOOD).unlink()
        assert ingest(spec, folders, network=True).files[0].origin.startswith(origin)
        written.append((folders.out / "manifest.json").read_bytes())
    assert len(set(written)) == 1
    assert str(tmp_path) not in written[0].decode()
    manifest = read_manifest(folders)
    assert manifest["status"] == "present"
    assert manifest["files"] == [{"name": "a.csv", "sha256": digest(GOOD), "bytes": len(GOOD)}]
    assert manifest["license"] == "the license"


def test_ingest_source_rejects_wrong_bytes_in_a_mirror_and_downloads(internet, folders):
    internet.pages["/a"] = Page(GOOD)
    bad = folders.mirror / "src/a.csv"
    bad.write_bytes(BAD)
    result = ingest(make_spec(file_conf(url=internet.url("/a"))), folders, network=True)
    assert result.files[0].origin.startswith("address")
    assert bad.read_bytes() == BAD, "a mirror belongs to the user"
    assert "wrong checksum" in result.summary
    assert f"mirror {folders.mirror}" in result.summary
    assert "\n" not in result.summary


def test_ingest_source_replaces_wrong_bytes_in_the_cache(internet, folders):
    internet.pages["/a"] = Page(GOOD)
    cached = write_to_cache(folders, BAD, under=digest(GOOD))
    result = ingest(make_spec(file_conf(url=internet.url("/a"))), folders, network=True)
    assert result.status == "present"
    assert cached.read_bytes() == GOOD


@pytest.mark.parametrize("wrong", [GOOD + b"more", GOOD[:-1], b""])
def test_ingest_source_replaces_a_cached_file_of_another_length(internet, folders, wrong):
    internet.pages["/a"] = Page(GOOD)
    cached = write_to_cache(folders, wrong, under=digest(GOOD))
    assert ingest(make_spec(file_conf(url=internet.url("/a"))), folders, network=True).status == "present"
    assert cached.read_bytes() == GOOD


def test_ingest_source_rejects_wrong_bytes_at_the_address(internet, folders, checks):
    internet.pages["/a"] = Page(BAD)
    result = ingest(make_spec(file_conf(url=internet.url("/a"))), folders, network=True)
    assert result.status == "missing"
    assert "a.csv" in result.summary
    assert digest(GOOD)[:12] in result.summary
    assert not [path for path in (folders.cache / "sha256").rglob("*") if path.is_file()]
    assert not (folders.out / "a.csv").exists()
    assert checks == []


def test_ingest_source_downloads_whole_after_a_cut_download_of_other_bytes(internet, folders):
    url = internet.url("/a")
    internet.pages["/a"] = Page(BAD, cut_at=3000, cuts=9)
    spec = make_spec(file_conf(url=url))
    assert ingest(spec, folders, network=True).status == "missing"
    internet.pages["/a"] = Page(GOOD)
    assert ingest(spec, folders, network=True).status == "present"
    assert (folders.out / "a.csv").read_bytes() == GOOD


def test_ingest_source_reports_a_missing_source_in_one_line_and_an_empty_manifest(folders, checks):
    result = ingest(make_spec(file_conf()), folders)
    assert result.status == "missing"
    assert result.summary.startswith("src is missing: a.csv (")
    for part in (
        f"cache {folders.cache}: not found",
        f"mirror {folders.second}: not found",
        "network",
        "PERFCAST_MIRROR",
    ):
        assert part in result.summary
    assert "\n" not in result.summary
    manifest = read_manifest(folders)
    assert (manifest["status"], manifest["files"]) == ("missing", [])
    assert "a.csv (cache: not found; mirror: not found)" in manifest["reason"]
    assert "src/" in manifest["remedy"]
    assert str(folders.cache) not in json.dumps(manifest)
    assert sorted(path.name for path in folders.out.iterdir()) == ["digests.sha256", "manifest.json"]
    assert checks == []


def test_ingest_source_reports_the_reason_of_every_origin(internet, folders):
    (folders.mirror / "src/a.csv").write_bytes(BAD)
    (folders.second / "src/a.csv").mkdir()
    result = ingest(make_spec(file_conf(url=internet.url("/none"))), folders, network=True)
    for part in ("not found", "wrong checksum", "not a regular file", "HTTP status 404"):
        assert part in result.summary


def test_ingest_source_strict_raises_and_leaves_the_old_files(folders):
    folders.out.mkdir()
    (folders.out / "old").write_bytes(GOOD)
    with pytest.raises(UserError, match=r"source 'src' must be there.*a\.csv .*PERFCAST_MIRROR"):
        ingest(make_spec(file_conf()), folders, strict=True)
    assert [path.name for path in folders.out.iterdir()] == ["old"]
    assert [path.name for path in folders.out.parent.iterdir() if path.name.startswith(".")] == []


def test_ingest_source_without_network_sends_no_request(internet, folders):
    internet.pages["/a"] = Page(GOOD)
    assert ingest(make_spec(file_conf(url=internet.url("/a"))), folders, network=False).status == "missing"
    assert internet.requests == []


def test_ingest_source_tries_no_other_file_after_a_failure_to_connect(folders, monkeypatch):
    lookups = []

    def refuse(host, *args, **options):
        lookups.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    entries = [file_conf(name=name) for name in ("a.csv", "b.csv")]
    spec = make_spec(snapshots=[{"name": "one", "files": entries}, {"name": "two", "files": [file_conf(BAD)]}])
    assert ingest(spec, folders, network=True).status == "missing"
    assert lookups == ["example.invalid"]


def two_snapshots(url: str):
    cut = {key: value for key, value in file_conf(GOOD).items() if key != "url"}
    whole = {**file_conf(BAD, url=url), "mirror": "src/whole.csv"}
    return make_spec(
        snapshots=[
            {"name": "cut", "derived_from": "whole", "files": [cut]},
            {"name": "whole", "files": [whole]},
        ]
    )


def test_ingest_source_accepts_any_one_snapshot(internet, folders):
    internet.pages["/a"] = Page(BAD)
    spec = two_snapshots(internet.url("/a"))
    assert ingest(spec, folders).status == "missing"

    assert ingest(spec, folders, network=True).snapshot == "whole"
    assert (folders.out / "a.csv").read_bytes() == BAD
    write_to_cache(folders, BAD).unlink()

    (folders.mirror / "src/whole.csv").write_bytes(BAD)
    assert ingest(spec, folders).snapshot == "whole"

    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    assert ingest(spec, folders).snapshot == "cut"
    assert (folders.out / "a.csv").read_bytes() == GOOD
    assert read_manifest(folders)["snapshot"] == "cut"


def test_ingest_source_prefers_a_local_snapshot_to_the_network(internet, folders):
    (folders.mirror / "src/whole.csv").write_bytes(BAD)
    assert ingest(two_snapshots(internet.url("/a")), folders, network=True).snapshot == "whole"
    assert internet.requests == []


def test_ingest_source_takes_embedded_files_from_the_project_only(folders):
    spec = make_spec({"name": "m.csv"}, embedded=True, remedy="measure anew")
    (folders.mirror / "m.csv").write_bytes(GOOD)
    missing = ingest(spec, folders, network=True)
    assert missing.status == "missing"
    assert missing.summary.endswith("Remedy: measure anew")
    (folders.embedded / "m.csv").write_bytes(GOOD)
    present = ingest(spec, folders)
    assert present.files[0].origin == f"embedded {folders.embedded}"
    assert present.files[0].sha256 == digest(GOOD)


def test_ingest_source_leaves_nothing_after_a_failed_check(folders, monkeypatch):
    def check(folder):
        raise UserError("a", "b")

    monkeypatch.setattr("perfcast.sources.ingestion.plugins.load", lambda *names: SimpleNamespace(check=check))
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    with pytest.raises(UserError):
        ingest(make_spec(file_conf()), folders)
    assert not folders.out.exists()


def test_ingest_source_reports_a_cache_that_cannot_be_written(internet, folders):
    internet.pages["/a"] = Page(GOOD)
    folders.cache.write_text("a file where the folder should be")
    with pytest.raises(UserError, match="the cache must be writable"):
        ingest(make_spec(file_conf(url=internet.url("/a"))), folders, network=True)


def test_ingest_source_writes_files_into_their_folders(folders):
    (folders.mirror / "src/deep").mkdir()
    (folders.mirror / "src/deep/a.csv").write_bytes(GOOD)
    ingest(make_spec(file_conf(name="deep/a.csv")), folders)
    assert (folders.out / "deep/a.csv").read_bytes() == GOOD


def test_locate_source_compares_sizes_and_does_not_read(folders):
    spec = make_spec(file_conf())
    options = {"cache": folders.cache, "mirrors": [folders.mirror, folders.second], "embedded": folders.embedded}
    assert not locate_source(spec, **options).is_local
    assert "not found" in locate_source(spec, **options).reason
    (folders.mirror / "src/a.csv").write_bytes(GOOD[:-1])
    assert "bytes, not the" in locate_source(spec, **options).reason
    (folders.second / "src/a.csv").write_bytes(BAD)
    assert locate_source(spec, **options).locations[0].folder == folders.second, "the checksum is left to ingestion"
    write_to_cache(folders, GOOD)
    assert locate_source(spec, **options).locations[0].kind == "cache"


def test_tabulate_sources_returns_a_row_per_source(folders):
    options = {"cache": folders.cache, "mirrors": [folders.mirror], "embedded": folders.embedded}
    (absent,) = tabulate_sources([make_spec(file_conf())], **options)
    assert absent["location"].startswith("not on this machine: a.csv (cache ")
    assert absent["size"] == "5.5 kB"
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    (present,) = tabulate_sources([make_spec(file_conf())], **options)
    assert present == {
        "name": "src",
        "location": f"mirror {folders.mirror}",
        "size": "5.5 kB",
        "license": "the license",
    }
