"""Declarations of sources: what is read of them, and defects in one line."""

import pytest

from perfcast.sources.source_spec import MAX_FILE_BYTES, is_allowed_url, parse_source
from perfcast.utils.errors import UserError

SHA = "0f" * 32
FILE = {"name": "a.csv", "sha256": SHA, "bytes": 5, "mirror": "s/a.csv", "url": "https://example.org/a.csv"}
ABOUT = {key: f"the {key}" for key in ("title", "license", "terms", "citation", "homepage")}
CONF = {**ABOUT, "files": [FILE]}


def test_parse_source_returns_the_declared_fields():
    def only_file(conf):
        return parse_source("s", conf).editions[0][0]

    spec, file = parse_source("s", CONF), only_file(CONF)
    assert (spec.name, spec.license, spec.embedded) == ("s", "the license", False)
    assert (file.name, file.sha256, file.size, file.max_bytes, file.mirror) == ("a.csv", SHA, 5, 5, "s/a.csv")
    bounded = only_file(conf_with_file(bytes=None, max_bytes=99))
    assert (bounded.size, bounded.max_bytes) == (None, 99)
    named = only_file({**ABOUT, "embedded": True, "files": [{"name": "a.csv"}]})
    assert (named.sha256, named.url, named.max_bytes) == (None, None, MAX_FILE_BYTES)


def test_a_packed_table_comes_before_the_official_files_which_need_no_address():
    conf = {**conf_with_file(url=None), "packed": "perfcast.somewhere.pack"}
    packed, official = parse_source("s", conf).editions
    assert [(file.name, file.path, file.sha256) for file in packed] == [("s.csv.xz", "s/s.csv.xz", None)]
    assert [file.name for file in official] == ["a.csv"]


def test_a_file_of_a_mirror_needs_no_address_where_a_remedy_says_how_it_is_made():
    (files,) = parse_source("s", {**conf_with_file(url=None), "remedy": "run make_it.py"}).editions
    assert [(file.mirror, file.url) for file in files] == [("s/a.csv", None)]


def test_files_without_an_address_are_below_the_folders_of_their_source():
    files = [{"name": name, "sha256": SHA, "bytes": 5} for name in ("a/b.csv", "c.csv")]
    files[1] |= {"path": "d/e.csv", "url": "https://example.org/own.csv"}
    (placed,) = parse_source("s", conf_with(files=files, mirror="s/m", url="https://example.org/u")).editions
    assert [file.mirror for file in placed] == ["s/m/a/b.csv", "s/m/d/e.csv"]
    assert [file.url for file in placed] == ["https://example.org/u/a/b.csv", "https://example.org/own.csv"]


def conf_with(**values):
    return {**CONF, **values}


def conf_with_file(**values):
    return {**ABOUT, "files": [{key: value for key, value in {**FILE, **values}.items() if value is not None}]}


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ([], "must be a mapping"),
        (conf_with(title=""), "'title' in conf/source/s.yaml: must be a non-empty text"),
        ({key: value for key, value in CONF.items() if key != "terms"}, "must have the key 'terms'"),
        (conf_with(embedded="yes"), "a valid boolean, but found 'yes'"),
        (ABOUT, "must have the key 'files'"),
        (conf_with(files=["a.csv"]), "a valid dictionary"),
        (conf_with(files=[FILE, FILE]), "'a.csv' is there twice"),
        (conf_with_file(sha256=None), "must declare 'sha256'"),
        (conf_with_file(max_bytes=9), "either 'bytes' or 'max_bytes'"),
        (conf_with_file(url=None), "must declare 'url'"),
        ({**conf_with_file(url=None, mirror=None), "remedy": "run make_it.py"}, "must declare 'url'"),
        (conf_with(embedded=True), "its name only"),
        (conf_with(url="http://example.org"), "must be an https address"),
        (conf_with(live=FILE), "'live' must declare 'url' and 'max_bytes', and no 'sha256'"),
    ],
)
def test_parse_source_reports_a_defect_in_one_line(conf, message):
    """Others are in `tests/hostile/test_configurations.py`."""
    with pytest.raises(UserError) as caught:
        parse_source("s", conf)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


ALLOWED = ("https://example.org/a", "http://127.0.0.1:80/a", "http://localhost/a", "http://[::1]:80/a")
REFUSED = (
    "http://127.0.0.1.example.org/a",
    "http://example.org/a",
    "https:///a",
    "https://example.org:port/a",
    "ftp://example.org/a",
    "http://[bad",
    "",
)


def test_is_allowed_url_accepts_https_and_loopback_only():
    assert [url for url in (*ALLOWED, *REFUSED) if is_allowed_url(url)] == list(ALLOWED)
