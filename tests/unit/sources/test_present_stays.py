"""A source that was ingested stays present, or the ingestion is refused and its files stay."""

import hashlib
import json
import shutil
from types import SimpleNamespace

import pytest

from perfcast.sources.ingestion import ingest_source
from perfcast.sources.locations import locate_source
from perfcast.sources.source_spec import parse_source
from perfcast.utils.errors import UserError
from perfcast.utils.io import file_digests

GOOD, BAD = b"good bytes\n" * 500, b"evil bytes\n" * 500


@pytest.fixture
def folders(tmp_path):
    """Folders of one machine: results, cache, mirror, embedded data."""
    paths = {name: tmp_path / name for name in ("out", "cache", "mirror", "embedded")}
    (paths["mirror"] / "src").mkdir(parents=True)
    paths["embedded"].mkdir()
    return SimpleNamespace(**paths)


def file_conf(body=GOOD):
    digest = hashlib.sha256(body).hexdigest()
    return {
        "name": "a.csv",
        "sha256": digest,
        "bytes": len(body),
        "mirror": "src/a.csv",
        "url": "https://example.invalid",
    }


def make_spec(*files, **more):
    about = {key: f"the {key}" for key in ("title", "license", "terms", "citation", "homepage")}
    return parse_source("src", {**about, "files": list(files), **more})


def ingest(spec, folders):
    places = {"cache": folders.cache, "mirrors": [folders.mirror], "embedded": folders.embedded}
    return ingest_source(spec, folders.out, network=False, **places)


def read_manifest(folders):
    return json.loads((folders.out / "manifest.json").read_text())


@pytest.mark.reliability("a source that was present becomes missing, and its files are replaced")
@pytest.mark.parametrize("gone", ["mirror", "mirror and cache"])
def test_a_source_stays_present_where_mirror_network_and_cache_are_gone(folders, gone):
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    ingest(make_spec(file_conf()), folders)
    (folders.mirror / "src/a.csv").unlink()
    if gone == "mirror and cache":
        shutil.rmtree(folders.cache)
        assert locate_source(
            make_spec(file_conf()), cache=folders.cache, mirrors=(), embedded=folders.embedded, earlier=folders.out
        ).is_local
    (folders.out / "manifest.json").unlink()  # Snakemake removes the output of a job before the job
    assert ingest(make_spec(file_conf()), folders).status == "present"
    assert (folders.out / "a.csv").read_bytes() == GOOD
    assert read_manifest(folders)["status"] == "present"


@pytest.mark.reliability("a source that was present becomes missing, and its files are replaced")
@pytest.mark.parametrize("cause", ["other checksum in conf", "flipped bit", "embedded file deleted"])
def test_a_source_that_cannot_be_had_again_is_refused_and_its_files_stay(folders, cause):
    spec = make_spec({"name": "a.csv"}, embedded=True) if cause == "embedded file deleted" else make_spec(file_conf())
    (folders.mirror / "src/a.csv").write_bytes(GOOD)
    (folders.embedded / "a.csv").write_bytes(GOOD)
    ingest(spec, folders)
    for folder in (folders.mirror, folders.cache, folders.embedded):
        shutil.rmtree(folder, ignore_errors=True)
    if cause == "other checksum in conf":
        spec = make_spec(file_conf(BAD))
    elif cause == "flipped bit":
        (folders.out / "a.csv").write_bytes(bytes([GOOD[0] ^ 1]) + GOOD[1:])
    before = file_digests(folders.out)
    with pytest.raises(
        UserError, match=r"must stay present, but a\.csv of the last ingestion is in .*; bring the mirr"
    ):
        ingest(spec, folders)
    assert file_digests(folders.out) == before
