"""Contract of every source, checked on its conf file and its module."""

import inspect
import re
from pathlib import Path

import pytest

from perfcast import plugins
from perfcast.config.conf_files import conf_files, read_conf
from perfcast.domains.servers.datasets.spec_cpu import cpu2006, cpu2017
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_detail import BENCHMARKS
from perfcast.domains.servers.datasets.spec_java import jbb2015, power
from perfcast.sources.ingestion import check_structure
from perfcast.sources.source_spec import parse_source
from perfcast.utils.errors import UserError

CONF = Path(__file__).parents[2] / "conf"
NAMES = sorted(conf_files(CONF, "source"))


@pytest.fixture(params=NAMES)
def spec(request):
    return parse_source(request.param, read_conf(CONF, "source", request.param))


def test_every_module_with_a_check_is_named_by_a_conf_file():
    confs = [read_conf(CONF, "source", name) for name in NAMES]
    conf_modules = {conf["module"] for conf in confs if "module" in conf}
    assert set(plugins.names("sources")) == conf_modules


def test_structure_is_checked_by_columns_or_by_a_module(spec):
    assert spec.columns or spec.module
    if spec.module:
        check = plugins.load("sources", spec.module).check
        assert list(inspect.signature(check).parameters) == ["folder"]


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
            assert spec.name.startswith(file.mirror.partition("/")[0])
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


def test_check_reads_the_declared_files(spec, tmp_path):
    """The error for an empty folder names a declared file, so the files and their check agree on names."""
    with pytest.raises(UserError) as caught:
        check_structure(spec, tmp_path)
    assert any(file.name in str(caught.value) for file in spec.snapshots[0].files)


@pytest.mark.parametrize("module", [cpu2006, cpu2017, jbb2015, power])
def test_ingestion_requires_the_columns_that_a_dataset_of_a_dump_reads(module):
    """Only the levels of SPECpower that conf leaves out are checked by the dataset alone."""
    required = {frozenset(columns) for name in NAMES for columns in _columns(name).values()}
    read = {name for name in module.DUMP.raw_columns if not re.search(r"@ ?[1-9]0% of target load", name)}
    assert any(read <= columns for columns in required)


def test_ingestion_requires_every_score_of_the_detail_files():
    required = _columns("spec_cpu2017_detail")
    assert all(set(scores) <= set(required[file]) for file, scores in BENCHMARKS.items())
    assert set(required) == set(BENCHMARKS)


def _columns(name):
    return parse_source(name, read_conf(CONF, "source", name)).columns
