"""YAML from outside: plain values, bounded, in one line of error; what is written reads back the same."""

import re

import pytest
import yaml

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.safe_yaml import read_mapping, read_yaml_text, yaml_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-03", "2026-03"),
        ("2026-03-01", "2026-03-01"),
        ("2026-03-01 10:00:00", "2026-03-01 10:00:00"),
        ("1e-3", 0.001),
        ("1.0e-05", 1e-05),
        ("[1, 2.5, null, true, x]", [1, 2.5, None, True, "x"]),
        ("yes", "yes"),
        ("", None),
        ("&a 1", 1),
        ("!!timestamp 2026-03-01", "2026-03-01"),
    ],
)
def test_plain_values(text, value):
    result = read_yaml_text(text, "a.yaml")
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3.*a name is repeated"),
        ("a: &x [1]\nb: *x\n", "line 2: references"),
        ("a: *x", "line 1: references"),
        ("a: [1\nb: 2", "line 2"),
        ("!!python/object/apply:os.system [true]", "could not determine a constructor"),
        ("a: 1\n---\nb: 2\n", "line 2"),
        ("!!int x", "plain values"),
        ("[" * 5000, "nested too deep|line 1"),
        ("x" * (size_limits.YAML + 1), "at most 1048576 characters.*1048577"),
        ("a: \x00", "special characters|unacceptable"),
        ("!!float [1]", "YAML"),
        ("9" * 5000, "YAML of plain values"),
    ],
)
def test_anything_else_is_one_line(text, pattern):
    with pytest.raises(UserError) as raised:
        read_yaml_text(text, "a.yaml")
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith("a.yaml must ")
    assert re.search(pattern, str(raised.value)), str(raised.value)


def test_files_of_programs_may_have_references_and_must_be_mappings():
    assert read_mapping("a: &x [1]\nb: *x\n", "dvc.lock") == {"a": [1], "b": [1]}
    assert read_mapping("", "dvc.lock") == {}
    with pytest.raises(UserError, match="mapping"):
        read_mapping("[1]", "dvc.lock")


VALUES = {
    "b": [1e-05, 1e22, 0.1, -0.0, float("inf"), 10**20, True, None],
    "a": ["1e-3", "2026-03", "null", "", "- a", "x: y", "#c", "é", "a\nb", "*r", "0x1f", "word " * 60],
}


@pytest.mark.parametrize("flow_leaves", [False, True])
def test_written_values_read_back_the_same_here_and_elsewhere(flow_leaves):
    text = yaml_text(VALUES, flow_leaves=flow_leaves)
    assert read_yaml_text(text, "a.yaml") == VALUES
    assert yaml.safe_load(text)["b"] == VALUES["b"]
    assert list(read_yaml_text(text, "a.yaml")) == ["b", "a"]
    assert not re.search(r" $", text, re.MULTILINE)


def test_keys_may_be_sorted():
    assert yaml_text({"b": 1, "a": [2]}, sort_keys=True) == "a:\n- 2\nb: 1\n"
    assert yaml_text({"b": 1, "a": [2]}, flow_leaves=True) == "b: 1\na: [2]\n"
