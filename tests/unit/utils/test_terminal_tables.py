"""Tables of the command line: aligned, plain, and fitted to a width."""

from __future__ import annotations

import pytest

from perfcast.utils.terminal_tables import NO_BREAK, drop_empty_columns, format_number, render_table, wrap_text

HEADER = ["task", "score", "machine"]
ROWS = [["CINT2017rate", "340", "SuperServer 940, 2 x xeon gold 6530 [bold]:smile:"], ["", "1.5", "PowerEdge R440"]]


def test_render_table_is_plain_with_right_aligned_numbers():
    assert render_table(HEADER, ROWS).splitlines() == [
        "  task          score  machine",
        "  CINT2017rate    340  SuperServer 940, 2 x xeon gold 6530 [bold]:smile:",
        "                  1.5  PowerEdge R440",
    ]


@pytest.mark.parametrize("width", [80, 60, 40])
def test_render_table_fits_the_width_without_loss(width):
    lines = render_table(HEADER, ROWS, width).splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for word in " ".join([*HEADER, *ROWS[0], *ROWS[1]]).split():
        assert word in text


def test_drop_empty_columns():
    assert drop_empty_columns(["a", "b"], [["1", ""], ["", ""]]) == (["a"], [["1"], [""]])


def test_wrap_text_breaks_between_words():
    wrapped = wrap_text(f"values: chips{NO_BREAK}2, cores{NO_BREAK}16", 20)
    assert wrapped == "values: chips 2,\n  cores 16"


def test_format_number_has_three_digits():
    assert [format_number(value) for value in (1234.5, 12.345, 0.01234)] == ["1234", "12.3", "0.0123"]
