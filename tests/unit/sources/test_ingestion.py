"""Ingestion: whole sources from cache, mirrors, the project or the network, or one line with the reason."""

import json
import shutil
import socket
from pathlib import Path

import pytest
from ingestible import BAD, GOOD, digest, file_conf, ingest, make_spec, names_in, places_of, read_manifest
from loopback import Page

from perfcast.sources.locations import cached_path, locate_source, present_sources, tabulate_sources
from perfcast.utils.errors import UserError
from perfcast.utils.io import file_digests


def write_to_cache(folders, body: bytes, under: str | None = None) -> Path:
    path = cached_path(folders.cache, under or digest(body))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def test_ingest_source_searches_cache_then_mirrors_then_address(internet, folders):
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
    (folders.mirror / "src/a.csv").unlink()
    assert ingest(spec, folders).files[0].origin == f"cache {folders.cache}", "what a mirror had is kept"


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
    with pytest.raises(UserError, match=r"lacks a\.csv"):
        present_sources(raw, [name])


def test_manifest_is_equal_from_every_origin_and_contains_no_path(internet, folders, tmp_path):
    internet.pages["/a"] = Page(GOOD)
    spec = make_spec(file_conf(url=internet.url("/a")))
    for name in ("mirror/src/unasked.csv", "out/stale.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(BAD)
    written = []
    for origin in ("address", "cache", "mirror"):
        if origin == "mirror":
            (folders.mirror / "src/a.csv").write_bytes(GOOD)
            write_to_cache(folders, GOOD).unlink()
        assert ingest(spec, folders, network=True).files[0].origin.startswith(origin)
        written.append((folders.out / "manifest.json").read_bytes())
        assert names_in(folders.out) == ["a.csv", "digests.sha256", "manifest.json"]
    assert len(set(written)) == 1
    assert str(tmp_path) not in written[0].decode()
    manifest = read_manifest(folders)
    assert manifest["status"] == "present"
    assert manifest["files"] == [{"name": "a.csv", "sha256": digest(GOOD), "bytes": len(GOOD)}]
    assert manifest["license"] == "the license"


def test_ingest_source_replaces_a_wrong_cached_file(internet, folders):
    internet.pages["/a"] = Page(GOOD)
    for wrong in (BAD, GOOD + b"more", GOOD[:-1], b""):
        shutil.rmtree(folders.out, ignore_errors=True)
        cached = write_to_cache(folders, wrong, under=digest(GOOD))
        assert ingest(make_spec(file_conf(url=internet.url("/a"))), folders, network=True).status == "present"
        assert cached.read_bytes() == GOOD


def test_ingest_source_reports_a_missing_source_in_one_line_and_an_empty_manifest(folders):
    result = ingest(make_spec(file_conf()), folders)
    assert result.status == "missing"
    assert result.summary == (
        "src is missing: its file is not here. Remedy: set network: true in params.yaml, or set PERFCAST_MIRROR"
    )
    assert "\n" not in result.summary
    manifest = read_manifest(folders)
    assert (manifest["status"], manifest["files"]) == ("missing", [])
    assert manifest["reason"] == "its file is not here"
    assert str(folders.cache) not in json.dumps(manifest)
    assert names_in(folders.out) == ["digests.sha256", "manifest.json"]


def test_wrong_bytes_in_mirrors_are_told_left_and_downloaded(internet, folders):
    bad = folders.mirror / "src/a.csv"
    bad.write_bytes(BAD)
    (folders.second / "src/a.csv").mkdir()
    spec = make_spec(file_conf(url=internet.url("/a")))
    assert ingest(spec, folders).status == "missing" and internet.requests == []
    assert "; wrong checksum, the sha256 is" in ingest(spec, folders, network=True).summary
    bad.write_bytes(BAD[:-1])
    (row,) = tabulate_sources([spec], places_of(folders))
    assert f"mirror {folders.second}: not a regular file" in row["way"]
    bad.write_bytes(BAD)
    internet.pages["/a"] = Page(GOOD)
    result = ingest(spec, folders, network=True)
    assert result.files[0].origin.startswith("address") and "wrong checksum" in result.summary
    assert bad.read_bytes() == BAD, "a mirror belongs to the user"
    assert "\n" not in result.summary


def test_ingest_source_strict_raises_and_leaves_the_old_files(folders):
    folders.out.mkdir()
    (folders.out / "old").write_bytes(GOOD)
    with pytest.raises(UserError, match=r"source 'src' must be there.*not here.*PERFCAST_MIRROR"):
        ingest(make_spec(file_conf()), folders, strict=True)
    assert names_in(folders.out) == ["old"]
    assert [path.name for path in folders.out.parent.iterdir() if path.name.startswith(".")] == []


def test_ingest_source_tries_no_other_file_after_a_failure_to_connect(folders, monkeypatch):
    lookups = []

    def refuse(host, *args, **options):
        lookups.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    entries = [file_conf(name=name) for name in ("a.csv", "b.csv")]
    spec = make_spec(*entries)
    assert ingest(spec, folders, network=True).status == "missing"
    assert lookups == ["example.invalid"]


def test_ingest_source_takes_the_packed_table_of_the_repository_first(internet, folders):
    internet.pages["/a"] = Page(GOOD)
    spec = make_spec(file_conf(url=internet.url("/a")), packed="perfcast.somewhere.pack")
    assert ingest(spec, folders, network=True).files[0].origin.startswith("address")
    (folders.embedded / "src" / "src.csv.xz").write_bytes(BAD)
    internet.requests.clear()
    assert ingest(spec, folders, network=True).files[0].origin == f"embedded {folders.embedded}"
    assert (folders.out / "src.csv.xz").read_bytes() == BAD and not (folders.out / "a.csv").exists()
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


def test_tabulate_sources_compares_sizes_and_reads_nothing(folders):
    def row():
        (only,) = tabulate_sources([make_spec(file_conf())], places_of(folders))
        return only

    assert row()["way"] == "to be downloaded from the homepage"
    (folders.mirror / "src/a.csv").write_bytes(GOOD[:-1])
    assert "bytes, not the" in row()["way"]
    (folders.mirror / "src/a.csv").write_bytes(BAD)
    location = f"mirror {folders.mirror}"
    assert row() == {"name": "src", "way": location, "size": "5.5 kB", "license": "the license"}
    write_to_cache(folders, GOOD)
    assert row()["way"].startswith("cache")


@pytest.mark.parametrize("gone", ["mirror", "mirror and cache"])
def test_a_source_stays_present_where_mirror_network_and_cache_are_gone(folders, gone):
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    ingest(make_spec(file_conf()), folders)
    (folders.mirror / "src/a.csv").unlink()
    if gone == "mirror and cache":
        shutil.rmtree(folders.cache)
        assert locate_source(make_spec(file_conf()), places_of(folders, folders.out)).is_local
    (folders.out / "manifest.json").unlink()  # Snakemake removes the output of a job before the job
    assert ingest(make_spec(file_conf()), folders).status == "present"
    assert (folders.out / "a.csv").read_bytes() == GOOD
    assert read_manifest(folders)["status"] == "present"


@pytest.mark.parametrize("cause", ["other checksum in conf", "embedded file deleted"])
def test_a_source_that_cannot_be_had_again_is_refused_and_its_files_stay(folders, cause):
    spec = make_spec({"name": "a.csv"}, embedded=True) if cause == "embedded file deleted" else make_spec(file_conf())
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    (folders.embedded / "a.csv").write_bytes(GOOD)
    ingest(spec, folders)
    for folder in (folders.mirror, folders.cache, folders.embedded):
        shutil.rmtree(folder, ignore_errors=True)
    if cause == "other checksum in conf":
        spec = make_spec(file_conf(BAD))
    before = file_digests(folders.out)
    with pytest.raises(
        UserError, match=r"must stay present, but a\.csv of the last ingestion is in .*; bring the mirr"
    ):
        ingest(spec, folders)
    assert file_digests(folders.out) == before
