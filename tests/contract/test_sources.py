"""Contract of every source, checked on its conf file."""

import os
import re
from pathlib import Path

import pandas as pd
import pytest

from perfcast import plugins
from perfcast.config.conf_files import conf_files, read_conf, read_yaml
from perfcast.domain import domains
from perfcast.sources.download import DownloadError
from perfcast.sources.ingestion import ingest_source
from perfcast.sources.locations import SourcePlaces, find_places
from perfcast.sources.packed import packed_name, read_packed, render_readme
from perfcast.sources.source_spec import parse_source

CONF = Path(__file__).parents[2] / "conf"
EMBEDDED = Path(__file__).parents[2] / "data" / "embedded"
NAMES = sorted(conf_files(CONF, "source"))


@pytest.fixture(params=NAMES)
def spec(request):
    return parse_source(request.param, read_conf(CONF, "source", request.param))


def test_spec_states_license_and_terms(spec):
    for text in (spec.title, spec.license, spec.terms, spec.citation):
        assert len(text) > 5
    assert spec.embedded or spec.homepage.startswith("https://")


def test_every_file_has_a_checksum_and_an_address_that_cannot_change(spec):
    for file in spec.editions[-1]:
        if spec.embedded:
            assert spec.remedy
            continue
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.mirror.startswith(("facts/", spec.name.partition("_operators")[0]))
        if file.url:
            assert re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.+", file.url)


def test_files_differ_in_checksum_and_mirror_path(spec):
    files = [file for file in spec.editions[-1] if file.sha256]
    assert len({file.sha256 for file in files}) == len(files)
    assert len({file.mirror for file in files}) == len(files)


def test_every_source_has_a_way_that_needs_no_other_folder(spec):
    """The repository has its files or its packed table, or every file has an address or is in the data of a domain."""
    files = spec.editions[0]
    if any(file.sha256 is None for file in files):
        assert all((EMBEDDED / (file.path or file.name)).is_file() for file in files)
    else:
        folders = [domain.folder / "data" for domain in domains()[1:]]
        assert all(file.url or any((folder / file.mirror).is_file() for folder in folders) for file in files)


@pytest.mark.parametrize("source", read_yaml(CONF.parent / "params.yaml")["sources"])
def test_the_default_experiment_is_ingested_without_network_and_mirrors(source, tmp_path):
    spec = parse_source(source, read_conf(CONF, "source", source))
    places = SourcePlaces(tmp_path / "cache", [], EMBEDDED)
    result = ingest_source(spec, tmp_path / source, places, network=False, strict=True)
    assert result.status == "present"
    assert {file.origin for file in result.files} == {f"embedded {EMBEDDED}"}


def test_a_missing_source_is_one_short_line(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    for network in (False, True):
        places = SourcePlaces(tmp_path / "cache", [tmp_path / "mirror"], tmp_path / "embedded")
        monkeypatch.setattr("perfcast.sources.ingestion.download_file", _fail_to_connect)
        result = ingest_source(spec, tmp_path / "out", places, network=network)
        assert result.status == "missing"
        assert len(result.summary) <= 160 and "\n" not in result.summary


def _fail_to_connect(file, path, limits):
    raise DownloadError("cannot connect to raw.githubusercontent.com", unreachable=True)


def test_the_packed_table_is_that_of_the_official_files(spec, tmp_path):
    """Where a mirror of this machine has them."""
    if spec.packed is None:
        pytest.skip("not packed")
    # a project of its own: no cache, no table
    places = find_places(tmp_path, [], os.environ)
    official = spec.model_copy(update={"packed": None})
    if ingest_source(official, tmp_path / spec.name, places, network=False).status == "missing":
        pytest.skip("no mirror has the official files")
    records = plugins.load_function(spec.packed, spec.name)(tmp_path / spec.name).records
    table = EMBEDDED / spec.name / packed_name(spec.name)
    pd.testing.assert_frame_equal(read_packed(table.parent, spec.name), records)
    assert table.stat().st_size <= 1_000_000


def test_the_page_of_the_packed_tables_is_that_of_the_tables():
    specs = {name: parse_source(name, read_conf(CONF, "source", name)) for name in NAMES}
    assert (EMBEDDED / "README.md").read_text() == render_readme(EMBEDDED, specs)
    assert sum(path.stat().st_size for path in EMBEDDED.glob("*/*.csv.xz")) <= 4_000_000
