import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.errors import UserError
from perfcast.sources import parse_source
from perfcast.sources.base import LARGEST_FILE, is_allowed_url

SHA = "0f" * 32
FILE = {"name": "a.csv", "sha256": SHA, "bytes": 5, "mirror": "s/a.csv", "url": "https://example.org/a.csv"}
ABOUT = {key: f"the {key}" for key in ("title", "module", "licence", "terms", "citation", "homepage")}
CONF = {**ABOUT, "files": [FILE]}


def test_a_source_is_read():
    spec = parse_source("s", CONF)
    (snapshot,) = spec.snapshots
    (file,) = snapshot.files
    assert (spec.name, spec.licence, spec.embedded, snapshot.name) == ("s", "the licence", False, None)
    assert (file.name, file.sha256, file.size, file.at_most, file.mirror) == ("a.csv", SHA, 5, 5, "s/a.csv")


def test_a_size_that_is_not_known_is_bounded():
    bounded = {**{key: value for key, value in FILE.items() if key != "bytes"}, "max_bytes": 99}
    file = parse_source("s", {**ABOUT, "files": [bounded]}).snapshots[0].files[0]
    assert (file.size, file.at_most) == (None, 99)


def test_an_embedded_file_has_a_name_only():
    file = parse_source("s", {**ABOUT, "embedded": True, "files": [{"name": "a.csv"}]}).snapshots[0].files[0]
    assert (file.sha256, file.url, file.at_most) == (None, None, LARGEST_FILE)


def changed(**values):
    return {**CONF, **values}


def of_file(**values):
    return {**ABOUT, "files": [{key: value for key, value in {**FILE, **values}.items() if value is not None}]}


def cut(derived_from: str):
    local = {key: value for key, value in FILE.items() if key != "url"}
    snapshots = [{"name": "cut", "derived_from": derived_from, "files": [local]}, {"name": "all", "files": [FILE]}]
    return {**ABOUT, "snapshots": snapshots}


def test_a_cut_names_the_published_snapshot_it_comes_from():
    assert [snapshot.derived_from for snapshot in parse_source("s", cut("all")).snapshots] == ["all", None]


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ([], "must be a mapping"),
        (changed(licens="x"), "did you mean 'licence'"),
        (changed(title=""), "'title' of source 's' must be a text"),
        (changed(title=7), "found 7"),
        ({key: value for key, value in CONF.items() if key != "terms"}, "terms is missing"),
        (changed(embedded="yes"), "must be true or false"),
        (changed(snapshots=[]), "either 'files' or 'snapshots'"),
        (ABOUT, "either 'files' or 'snapshots'"),
        (changed(files=[]), "a list that is not empty"),
        (changed(files="a.csv"), "a list that is not empty"),
        (changed(files=["a.csv"]), "must be a mapping"),
        (changed(files=[FILE, FILE]), "'a.csv' is there twice"),
        (of_file(name="../a.csv"), "a plain relative path"),
        (of_file(name="/a.csv"), "a plain relative path"),
        (of_file(name="b/../a.csv"), "a plain relative path"),
        (of_file(name="manifest.json"), "must not be called manifest.json"),
        (of_file(mirror="../../etc/passwd"), "a plain relative path"),
        (of_file(sha256="0f"), "64 lower-case hexadecimal digits"),
        (of_file(sha256="0F" * 32), "64 lower-case hexadecimal digits"),
        (of_file(sha256=None), "64 lower-case hexadecimal digits"),
        (of_file(bytes=None), "either 'bytes' or 'max_bytes'"),
        (of_file(max_bytes=9), "either 'bytes' or 'max_bytes'"),
        (of_file(bytes="5"), "a whole number of bytes"),
        (of_file(bytes=0), "a whole number of bytes"),
        (of_file(bytes=True), "a whole number of bytes"),
        (of_file(url="http://example.org/a"), "an https address"),
        (of_file(url="file:///etc/passwd"), "an https address"),
        (of_file(url=None), "must declare 'url'"),
        (of_file(colour="red"), "a key of a file"),
        (changed(embedded=True), "its name only"),
        (cut("none"), "'derived_from' in source 's' must be one of all"),
        ({**ABOUT, "snapshots": [{"name": "a", "files": [FILE]}] * 2}, "must have different names"),
    ],
)
def test_what_is_wrong_is_one_clear_line(conf, told):
    with pytest.raises(UserError) as caught:
        parse_source("s", conf)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*CONF, *FILE, "?"]), inner, max_size=5)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from([*CONF, "snapshots", "embedded", "remedy"]), ANY), st.booleans())
def test_any_configuration_is_read_or_told(values, complete):
    try:
        parse_source("s", {**CONF, **values} if complete else values)
    except UserError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.org/a", True),
        ("http://127.0.0.1:80/a", True),
        ("http://localhost/a", True),
        ("http://[::1]:80/a", True),
        ("http://127.0.0.1.example.org/a", False),
        ("http://example.org/a", False),
        ("https:///a", False),
        ("https://example.org:port/a", False),
        ("ftp://example.org/a", False),
        ("http://[bad", False),
        ("", False),
    ],
)
def test_addresses_are_https_or_of_this_machine(url, allowed):
    assert is_allowed_url(url) is allowed
