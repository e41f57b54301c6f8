import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.sources.source_spec import MAX_FILE_BYTES, is_allowed_url, parse_source
from perfcast.utils.errors import UserError

SHA = "0f" * 32
FILE = {"name": "a.csv", "sha256": SHA, "bytes": 5, "mirror": "s/a.csv", "url": "https://example.org/a.csv"}
ABOUT = {key: f"the {key}" for key in ("title", "license", "terms", "citation", "homepage")}
CONF = {**ABOUT, "files": [FILE]}
OPTIONAL = ("snapshots", "embedded", "remedy")


def test_parse_source_returns_the_declared_fields():
    spec = parse_source("s", CONF)
    (snapshot,) = spec.snapshots
    (file,) = snapshot.files
    assert (spec.name, spec.license, spec.embedded, snapshot.name) == ("s", "the license", False, None)
    assert (file.name, file.sha256, file.size, file.max_bytes, file.mirror) == ("a.csv", SHA, 5, 5, "s/a.csv")


def test_parse_source_bounds_an_unknown_size():
    bounded = {**{key: value for key, value in FILE.items() if key != "bytes"}, "max_bytes": 99}
    file = parse_source("s", {**ABOUT, "files": [bounded]}).snapshots[0].files[0]
    assert (file.size, file.max_bytes) == (None, 99)


def test_parse_source_accepts_embedded_files_with_a_name_only():
    file = parse_source("s", {**ABOUT, "embedded": True, "files": [{"name": "a.csv"}]}).snapshots[0].files[0]
    assert (file.sha256, file.url, file.max_bytes) == (None, None, MAX_FILE_BYTES)


def conf_with(**values):
    return {**CONF, **values}


def conf_with_file(**values):
    return {**ABOUT, "files": [{key: value for key, value in {**FILE, **values}.items() if value is not None}]}


def conf_with_subset(derived_from: str):
    local = {key: value for key, value in FILE.items() if key != "url"}
    snapshots = [{"name": "cut", "derived_from": derived_from, "files": [local]}, {"name": "all", "files": [FILE]}]
    return {**ABOUT, "snapshots": snapshots}


def test_parse_source_reads_the_origin_of_a_subset():
    assert [snapshot.derived_from for snapshot in parse_source("s", conf_with_subset("all")).snapshots] == ["all", None]


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ([], "must be a mapping"),
        (conf_with(licens="x"), "did you mean 'license'"),
        (conf_with(title=""), "'title' in conf/source/s.yaml: must be a non-empty text"),
        (conf_with(title=7), "found 7"),
        ({key: value for key, value in CONF.items() if key != "terms"}, "must have the key 'terms'"),
        (conf_with(embedded="yes"), "a valid boolean, but found 'yes'"),
        (conf_with(snapshots=[{"name": "a", "files": [FILE]}]), "either 'files' or 'snapshots'"),
        (ABOUT, "either 'files' or 'snapshots'"),
        (conf_with(files=[]), "at least 1 item"),
        (conf_with(files="a.csv"), "a valid list"),
        (conf_with(files=["a.csv"]), "a valid dictionary"),
        (conf_with(files=[FILE, FILE]), "'a.csv' is there twice"),
        (conf_with_file(name="../a.csv"), "a plain relative path"),
        (conf_with_file(name="/a.csv"), "a plain relative path"),
        (conf_with_file(name="b/../a.csv"), "a plain relative path"),
        (conf_with_file(name="manifest.json"), "not manifest.json"),
        (conf_with_file(mirror="../../etc/passwd"), "a plain relative path"),
        (conf_with_file(sha256="0f"), "64 lower-case hexadecimal digits"),
        (conf_with_file(sha256="0F" * 32), "64 lower-case hexadecimal digits"),
        (conf_with_file(sha256=None), "must declare 'sha256'"),
        (conf_with_file(bytes=None), "either 'bytes' or 'max_bytes'"),
        (conf_with_file(max_bytes=9), "either 'bytes' or 'max_bytes'"),
        (conf_with_file(bytes="5"), "'files.0.bytes' in conf/source/s.yaml"),
        (conf_with_file(bytes=0), "greater than 0"),
        (conf_with_file(bytes=True), "a valid integer"),
        (conf_with_file(url="http://example.org/a"), "an https address"),
        (conf_with_file(url="file:///etc/passwd"), "an https address"),
        (conf_with_file(url=None), "must declare 'url'"),
        (conf_with_file(color="red"), "'files.0.color'"),
        (conf_with(embedded=True), "its name only"),
        (conf_with_subset("none"), "must name a published snapshot, not 'none'"),
        ({**ABOUT, "snapshots": [{"name": "a", "files": [FILE]}] * 2}, "must have different names"),
    ],
)
def test_parse_source_reports_a_defect_in_one_line(conf, message):
    with pytest.raises(UserError) as caught:
        parse_source("s", conf)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*CONF, *FILE, "?"]), inner, max_size=5)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from([*CONF, *OPTIONAL]), ANY), st.booleans())
def test_parse_source_accepts_or_reports_any_configuration(values, complete):
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
def test_is_allowed_url_accepts_https_and_loopback_only(url, allowed):
    assert is_allowed_url(url) is allowed
