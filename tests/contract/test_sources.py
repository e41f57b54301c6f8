"""Contract of every source, checked on its conf file."""

import re
from pathlib import Path

import pytest

from perfcast.config.conf_files import conf_files, read_conf
from perfcast.sources.source_spec import parse_source

CONF = Path(__file__).parents[2] / "conf"
NAMES = sorted(conf_files(CONF, "source"))


@pytest.fixture(params=NAMES)
def spec(request):
    return parse_source(request.param, read_conf(CONF, "source", request.param))


def test_spec_states_license_and_terms(spec):
    for text in (spec.title, spec.license, spec.terms, spec.citation):
        assert len(text) > 5
    assert spec.embedded or spec.homepage.startswith("https://")


def test_every_file_has_a_checksum_and_an_address_that_cannot_change(spec):
    for snapshot in spec.snapshots:
        for file in snapshot.files:
            if spec.embedded:
                assert spec.remedy
                continue
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
            folder = file.mirror.partition("/")[0]
            assert folder == "facts" or spec.name.startswith(folder)
            if file.url is None and snapshot.derived_from is None:
                assert "commit" in spec.remedy
            elif snapshot.derived_from is None:
                assert re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.+", file.url)


def test_files_differ_in_checksum_and_mirror_path(spec):
    files = [file for snapshot in spec.snapshots for file in snapshot.files if file.sha256]
    assert len({file.sha256 for file in files}) == len(files)
    assert len({file.mirror for file in files}) == len(files)


def test_snapshots_have_the_same_file_names(spec):
    assert len({tuple(file.name for file in snapshot.files) for snapshot in spec.snapshots}) == 1
