"""Tables for the terminal: plain when piped, a bold heading in a terminal."""

import sys

from perfcast.utils.terminal_tables import format_table

HEAD, ROWS = ["name", "value"], [["a [b]", "1.5"], ["longer name", "12.25"]]


def test_format_table_is_plain_when_piped():
    lines = format_table(HEAD, ROWS, right=[1])
    assert lines == ["name         value", "a [b]          1.5", "longer name  12.25"]


def test_format_table_wraps_no_line():
    assert format_table(["x" * 300, "y"], [["a", "b" * 500]])[1].endswith("b" * 500)


def test_format_table_has_a_bold_heading_in_a_terminal(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    head, *_ = format_table(HEAD, ROWS)
    assert "\x1b[1m" in head
