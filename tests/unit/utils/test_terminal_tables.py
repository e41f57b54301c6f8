"""Tables of the command line: aligned, plain, and fitted to a width."""

from __future__ import annotations

import pytest

from perfcast.utils.terminal_tables import NO_BREAK, drop_empty_columns, format_number, render_table, wrap_text

HEADER = ["task", "score", "machine"]
ROWS = [["CINT2017rate", "340", "SuperServer 940, 2 x xeon gold 6530 [bold]:smile:"], ["", "1.5", "PowerEdge R440"]]


def test_a_table_is_plain_and_its_numbers_stand_to_the_right():
    assert render_table(HEADER, ROWS).splitlines() == [
        "  task          score  machine",
        "  CINT2017rate    340  SuperServer 940, 2 x xeon gold 6530 [bold]:smile:",
        "                  1.5  PowerEdge R440",
    ]


@pytest.mark.parametrize("width", [80, 60, 40])
def test_a_table_fits_the_width_and_keeps_every_word(width):
    lines = render_table(HEADER, ROWS, width).splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for word in " ".join([*HEADER, *ROWS[0], *ROWS[1]]).split():
        assert word in text


def test_empty_columns_are_dropped():
    assert drop_empty_columns(["a", "b"], [["1", ""], ["", ""]]) == (["a"], [["1"], [""]])


def test_text_is_wrapped_between_words_and_values():
    wrapped = wrap_text(f"values: chips{NO_BREAK}2, cores{NO_BREAK}16", 20)
    assert wrapped == "values: chips 2,\n  cores 16"


def test_numbers_have_three_digits_or_more():
    assert [format_number(value) for value in (1234.5, 12.345, 0.01234)] == ["1234", "12.3", "0.0123"]
