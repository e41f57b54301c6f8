"""Tables for the terminal: plain when piped, a bold heading in a terminal."""

import sys

from perfcast.utils.terminal_tables import format_table

HEAD, ROWS = ["name", "value"], [["a [b]", "1.5"], ["longer name", "12.25"]]


def test_piped_tables_are_plain_and_aligned():
    lines = format_table(HEAD, ROWS, right=[1])
    assert lines == ["name         value", "a [b]          1.5", "longer name  12.25"]


def test_long_lines_are_not_wrapped():
    assert format_table(["x" * 300, "y"], [["a", "b" * 500]])[1].endswith("b" * 500)


def test_the_heading_is_bold_in_a_terminal(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    head, *_ = format_table(HEAD, ROWS)
    assert "\x1b[1m" in head
