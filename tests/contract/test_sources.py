"""What every source must be, checked on its conf file and its module."""

import inspect
import re
from pathlib import Path

import pytest
import yaml

from perfcast import plugins
from perfcast.sources import parse_source

CONF = Path(__file__).parents[2] / "conf/source"
NAMES = sorted(path.stem for path in CONF.glob("*.yaml"))


@pytest.fixture(params=NAMES)
def spec(request):
    return parse_source(request.param, yaml.safe_load((CONF / f"{request.param}.yaml").read_text(encoding="utf-8")))


def test_every_module_has_a_conf_file_and_the_reverse():
    assert plugins.names("sources") == NAMES


def test_the_module_has_a_check(spec):
    check = plugins.load("sources", spec.module).check
    assert list(inspect.signature(check).parameters) == ["folder"]


def test_its_terms_are_stated(spec):
    for stated in (spec.title, spec.licence, spec.terms, spec.citation):
        assert len(stated) > 5
    assert spec.embedded or spec.homepage.startswith("https://")


def test_every_file_has_a_digest_and_an_address_that_cannot_change(spec):
    for snapshot in spec.snapshots:
        for file in snapshot.files:
            if spec.embedded:
                assert spec.remedy
                continue
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
            assert file.mirror.startswith(f"{spec.name}/")
            if snapshot.derived_from is None:
                assert re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.+", file.url)


def test_no_two_files_share_a_digest_or_a_mirror_path(spec):
    files = [file for snapshot in spec.snapshots for file in snapshot.files if file.sha256]
    assert len({file.sha256 for file in files}) == len(files)
    assert len({file.mirror for file in files}) == len(files)


def test_the_snapshots_give_the_same_names(spec):
    assert len({tuple(file.name for file in snapshot.files) for snapshot in spec.snapshots}) == 1


def test_the_check_reads_what_is_declared(spec, tmp_path):
    """An empty folder is refused with the name of a declared file, so that conf and module agree on names."""
    from perfcast.errors import UserError

    with pytest.raises(UserError) as caught:
        plugins.load("sources", spec.module).check(tmp_path)
    assert any(file.name in str(caught.value) for file in spec.snapshots[0].files)
