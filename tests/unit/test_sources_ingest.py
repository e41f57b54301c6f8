import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from loopback import Loopback, Page

from perfcast.errors import UserError
from perfcast.sources import Limits, describe, ingest, locate, parse_source

LIMITS = Limits(connect=1.0, read=0.3, total=10.0, attempts=2, backoff=0.01)
GOOD, BAD = b"good bytes\n" * 500, b"evil bytes\n" * 500


@pytest.fixture
def internet(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Loopback() as server:
        yield server


@pytest.fixture(autouse=True)
def checked(monkeypatch) -> list[list[str]]:
    """Stand for every source's module and note the files each check was shown."""
    seen: list[list[str]] = []

    def check(folder: Path) -> None:
        seen.append(sorted(path.name for path in folder.iterdir() if path.is_file()))

    monkeypatch.setattr("perfcast.sources._ingest.plugins.load", lambda package, name: SimpleNamespace(check=check))
    return seen


@pytest.fixture
def places(tmp_path):
    """The folders of one machine: results, cache, two mirrors, embedded data."""
    folders = {name: tmp_path / name for name in ("out", "cache", "mirror", "second", "embedded")}
    for name in ("mirror", "second", "embedded"):
        (folders[name] / "src").mkdir(parents=True)
    return SimpleNamespace(**folders)


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def file_conf(body: bytes = GOOD, name: str = "a.csv", url: str = "https://example.invalid/a") -> dict:
    return {"name": name, "sha256": digest(body), "bytes": len(body), "mirror": f"src/{name}", "url": url}


def source(*files: dict, **more):
    about = {key: f"the {key}" for key in ("title", "module", "licence", "terms", "citation", "homepage")}
    return parse_source("src", {**about, **({"files": list(files)} if files else {}), **more})


def bring(spec, places, *, network: bool = False, mirrors=None, **more):
    mirrors = [places.mirror, places.second] if mirrors is None else mirrors
    options = {"cache": places.cache, "mirrors": mirrors, "embedded": places.embedded, "limits": LIMITS}
    return ingest(spec, places.out, network=network, **options, **more)


def put_in_cache(places, body: bytes, under: str | None = None) -> Path:
    name = under or digest(body)
    path = places.cache / "sha256" / name[:2] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def manifest(places) -> dict:
    return json.loads((places.out / "manifest.json").read_text())


def test_the_cache_comes_before_the_mirror_and_the_mirror_before_the_address(internet, places, checked):
    internet.pages["/a"] = Page(GOOD)
    spec = source(file_conf(url=internet.url("/a")))

    assert bring(spec, places, network=True).files[0].origin == f"address {internet.url('/a')}"
    assert len(internet.requests) == 1
    assert [path.suffix for path in (places.cache / "partial").iterdir()] == [".lock"]
    assert bring(spec, places, network=True).files[0].origin == f"cache {places.cache}"

    put_in_cache(places, GOOD).unlink()
    (places.second / "src/a.csv").write_bytes(GOOD)
    assert bring(spec, places, network=True).files[0].origin == f"mirror {places.second}"
    (places.mirror / "src/a.csv").write_bytes(GOOD)
    assert bring(spec, places, network=True).files[0].origin == f"mirror {places.mirror}"
    assert len(internet.requests) == 1
    assert (places.out / "a.csv").read_bytes() == GOOD
    assert checked == [["a.csv"]] * 4


def test_the_folder_holds_the_declared_files_and_the_manifest_only(places):
    (places.mirror / "src/a.csv").write_bytes(GOOD)
    (places.mirror / "src/unasked.csv").write_bytes(BAD)
    places.out.mkdir()
    (places.out / "stale.csv").write_bytes(BAD)
    bring(source(file_conf()), places)
    assert sorted(path.name for path in places.out.iterdir()) == ["a.csv", "manifest.json"]


def test_the_manifest_is_the_same_from_every_origin_and_names_no_path(internet, places, tmp_path):
    internet.pages["/a"] = Page(GOOD)
    spec = source(file_conf(url=internet.url("/a")))
    written = []
    for origin in ("address", "cache", "mirror"):
        if origin == "mirror":
            (places.mirror / "src/a.csv").write_bytes(GOOD)
            put_in_cache(places, GOOD).unlink()
        assert bring(spec, places, network=True).files[0].origin.startswith(origin)
        written.append((places.out / "manifest.json").read_bytes())
    assert len(set(written)) == 1
    assert str(tmp_path) not in written[0].decode()
    about = manifest(places)
    assert about["status"] == "present"
    assert about["files"] == [{"name": "a.csv", "sha256": digest(GOOD), "bytes": len(GOOD)}]
    assert about["licence"] == "the licence"


def test_wrong_bytes_in_a_mirror_are_kept_aside_and_the_address_is_asked(internet, places):
    internet.pages["/a"] = Page(GOOD)
    bad = places.mirror / "src/a.csv"
    bad.write_bytes(BAD)
    result = bring(source(file_conf(url=internet.url("/a"))), places, network=True)
    assert result.files[0].origin.startswith("address")
    assert bad.read_bytes() == BAD, "a mirror belongs to the user"
    kept = places.cache / "refused" / f"a.csv.{digest(BAD)[:12]}"
    assert kept.read_bytes() == BAD
    assert "wrong checksum" in result.line
    assert str(kept) in result.line
    assert f"mirror {places.mirror}" in result.line
    assert "\n" not in result.line


def test_wrong_bytes_in_the_cache_are_moved_away_and_replaced(internet, places):
    internet.pages["/a"] = Page(GOOD)
    cached = put_in_cache(places, BAD, under=digest(GOOD))
    result = bring(source(file_conf(url=internet.url("/a"))), places, network=True)
    assert result.status == "present"
    assert cached.read_bytes() == GOOD
    assert (places.cache / "refused" / f"a.csv.{digest(BAD)[:12]}").read_bytes() == BAD


@pytest.mark.parametrize("wrong", [GOOD + b"more", GOOD[:-1], b""])
def test_a_cached_file_of_another_length_is_replaced(internet, places, wrong):
    internet.pages["/a"] = Page(GOOD)
    cached = put_in_cache(places, wrong, under=digest(GOOD))
    assert bring(source(file_conf(url=internet.url("/a"))), places, network=True).status == "present"
    assert cached.read_bytes() == GOOD


def test_wrong_bytes_at_the_address_are_refused_named_and_kept_aside(internet, places, checked):
    internet.pages["/a"] = Page(BAD)
    result = bring(source(file_conf(url=internet.url("/a"))), places, network=True)
    assert result.status == "missing"
    assert (places.cache / "refused" / f"a.csv.{digest(BAD)[:12]}").read_bytes() == BAD
    assert "a.csv" in result.line
    assert digest(GOOD)[:12] in result.line
    assert digest(BAD)[:12] in result.line
    assert not any((places.cache / "sha256").rglob("*.*"))
    assert not (places.out / "a.csv").exists()
    assert checked == []


def test_a_file_that_changed_during_a_cut_download_is_fetched_whole(internet, places):
    url = internet.url("/a")
    internet.pages["/a"] = Page(BAD, cut_at=3000, cuts=9)
    spec = source(file_conf(url=url))
    assert bring(spec, places, network=True).status == "missing"
    internet.pages["/a"] = Page(GOOD)
    assert bring(spec, places, network=True).status == "present"
    assert (places.out / "a.csv").read_bytes() == GOOD
    assert not (places.cache / "refused").exists()


def test_a_missing_source_is_one_plain_line_and_an_empty_manifest(places, checked):
    result = bring(source(file_conf()), places)
    assert result.status == "missing"
    assert result.line.startswith("src is left out: a.csv (")
    for told in (
        f"cache {places.cache}: not there",
        f"mirror {places.second}: not there",
        "network",
        "PERFCAST_MIRROR",
    ):
        assert told in result.line
    assert "\n" not in result.line
    about = manifest(places)
    assert (about["status"], about["files"]) == ("missing", [])
    assert "a.csv (cache: not there; mirror: not there)" in about["reason"]
    assert "src/" in about["remedy"]
    assert str(places.cache) not in json.dumps(about)
    assert [path.name for path in places.out.iterdir()] == ["manifest.json"]
    assert checked == []


def test_every_origin_tells_its_reason(internet, places):
    (places.mirror / "src/a.csv").write_bytes(BAD)
    (places.second / "src/a.csv").mkdir()
    result = bring(source(file_conf(url=internet.url("/none"))), places, network=True)
    for told in ("not there", "wrong checksum", "not a regular file", "HTTP status 404"):
        assert told in result.line


def test_strict_makes_a_missing_source_an_error_and_leaves_the_old_files(places):
    places.out.mkdir()
    (places.out / "old").write_bytes(GOOD)
    with pytest.raises(UserError, match=r"source 'src' must be there, however: a\.csv .*PERFCAST_MIRROR"):
        bring(source(file_conf()), places, strict=True)
    assert [path.name for path in places.out.iterdir()] == ["old"]
    assert [path.name for path in places.out.parent.iterdir() if path.name.startswith(".")] == []


def test_without_network_nothing_is_asked(internet, places):
    internet.pages["/a"] = Page(GOOD)
    assert bring(source(file_conf(url=internet.url("/a"))), places, network=False).status == "missing"
    assert internet.requests == []


def test_after_a_failure_to_connect_no_other_file_is_tried(places, monkeypatch):
    tried = []

    def unreachable(url, seconds):
        from perfcast.sources._fetch import FetchError

        tried.append(url)
        raise FetchError("cannot connect to example.invalid", unreachable=True)

    monkeypatch.setattr("perfcast.sources._fetch._require_reachable", unreachable)
    entries = [file_conf(name=name) for name in ("a.csv", "b.csv")]
    spec = source(snapshots=[{"name": "one", "files": entries}, {"name": "two", "files": [file_conf(BAD)]}])
    assert bring(spec, places, network=True).status == "missing"
    assert tried == ["https://example.invalid/a"]


def two_snapshots(url: str):
    cut = {key: value for key, value in file_conf(GOOD).items() if key != "url"}
    whole = {**file_conf(BAD, url=url), "mirror": "src/whole.csv"}
    return source(
        snapshots=[
            {"name": "cut", "derived_from": "whole", "files": [cut]},
            {"name": "whole", "files": [whole]},
        ]
    )


def test_any_one_snapshot_suffices(internet, places):
    internet.pages["/a"] = Page(BAD)
    spec = two_snapshots(internet.url("/a"))
    assert bring(spec, places).status == "missing"

    assert bring(spec, places, network=True).snapshot == "whole"
    assert (places.out / "a.csv").read_bytes() == BAD
    put_in_cache(places, BAD).unlink()

    (places.mirror / "src/whole.csv").write_bytes(BAD)
    assert bring(spec, places).snapshot == "whole"

    (places.mirror / "src/a.csv").write_bytes(GOOD)
    assert bring(spec, places).snapshot == "cut"
    assert (places.out / "a.csv").read_bytes() == GOOD
    assert manifest(places)["snapshot"] == "cut"


def test_a_snapshot_on_this_machine_spares_the_network(internet, places):
    (places.mirror / "src/whole.csv").write_bytes(BAD)
    assert bring(two_snapshots(internet.url("/a")), places, network=True).snapshot == "whole"
    assert internet.requests == []


def test_embedded_files_come_from_the_project_and_from_nowhere_else(places):
    spec = source({"name": "m.csv"}, embedded=True, remedy="measure anew")
    (places.mirror / "m.csv").write_bytes(GOOD)
    missing = bring(spec, places, network=True)
    assert missing.status == "missing"
    assert missing.line.endswith("To get it: measure anew")
    (places.embedded / "m.csv").write_bytes(GOOD)
    present = bring(spec, places)
    assert present.files[0].origin == f"embedded {places.embedded}"
    assert present.files[0].sha256 == digest(GOOD)


def test_a_failing_check_leaves_nothing(places, monkeypatch):
    def check(folder):
        raise UserError("a", "b")

    monkeypatch.setattr("perfcast.sources._ingest.plugins.load", lambda package, name: SimpleNamespace(check=check))
    (places.mirror / "src/a.csv").write_bytes(GOOD)
    with pytest.raises(UserError):
        bring(source(file_conf()), places)
    assert not places.out.exists()


def test_a_cache_that_cannot_be_written_is_one_line(internet, places):
    internet.pages["/a"] = Page(GOOD)
    places.cache.write_text("a file where the folder should be")
    with pytest.raises(UserError, match="the cache must be writable"):
        bring(source(file_conf(url=internet.url("/a"))), places, network=True)


def test_files_in_folders_keep_their_paths(places):
    (places.mirror / "src/deep").mkdir()
    (places.mirror / "src/deep/a.csv").write_bytes(GOOD)
    bring(source(file_conf(name="deep/a.csv")), places)
    assert (places.out / "deep/a.csv").read_bytes() == GOOD


def test_locate_tells_where_without_reading(places):
    spec = source(file_conf())
    options = {"cache": places.cache, "mirrors": [places.mirror, places.second], "embedded": places.embedded}
    assert not locate(spec, **options).found
    assert "not there" in locate(spec, **options).why_not
    (places.mirror / "src/a.csv").write_bytes(GOOD[:-1])
    assert "bytes, not the" in locate(spec, **options).why_not
    (places.second / "src/a.csv").write_bytes(BAD)
    assert locate(spec, **options).files[0].place.folder == places.second, "the checksum is left to ingestion"
    put_in_cache(places, GOOD)
    assert locate(spec, **options).files[0].place.kind == "cache"


def test_describe_gives_a_row_per_source(places):
    options = {"cache": places.cache, "mirrors": [places.mirror], "embedded": places.embedded}
    (absent,) = describe([source(file_conf())], **options)
    assert absent["found"].startswith("not on this machine: a.csv (cache ")
    assert absent["size"] == "5.5 kB"
    (places.mirror / "src/a.csv").write_bytes(GOOD)
    (present,) = describe([source(file_conf())], **options)
    assert present == {"name": "src", "found": f"mirror {places.mirror}", "size": "5.5 kB", "licence": "the licence"}
