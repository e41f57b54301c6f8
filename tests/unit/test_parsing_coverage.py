"""Columns: every distinct text is parsed once; coverage counts rows that state something."""

import numpy as np
import pandas as pd

from perfcast.data.parsing.cache import parse_l2, parse_l3
from perfcast.data.parsing.distinct_texts import measure, parse_column
from perfcast.data.parsing.scalars import parse_flag


def test_a_column_keeps_its_index_and_parses_each_text_once():
    texts = pd.Series(["3 MB I+D on chip per core", None, "3 MB I+D on chip per core"], index=[7, 3, 5])
    calls = []

    def parse(text):
        calls.append(text)
        return parse_l2(text)

    frame = parse_column(texts, parse)
    assert sorted(text for text in calls if text) == ["3 MB I+D on chip per core"]
    assert list(frame.index) == [7, 3, 5]
    np.testing.assert_array_equal(frame["l2_kb_per_core"], [3072, np.nan, 3072])
    assert frame["l2_scope"].fillna("missing").tolist() == ["core", "missing", "core"]
    assert frame["complete"].tolist() == [1, 0, 1]


def test_flags_become_numbers():
    frame = parse_column(pd.Series(["Yes", "No", "?"]), parse_flag)
    np.testing.assert_array_equal(frame["value"], [1, 0, np.nan])


def test_an_empty_column_gives_all_fields():
    frame = parse_column(pd.Series([], dtype=str), parse_l3)
    assert len(frame) == 0
    assert "l3_mb_per_chip" in frame


def test_coverage_weighs_by_rows_that_state_something():
    texts = pd.Series(["Yes"] * 6 + ["maybe"] * 2 + ["", None, "redacted"])
    coverage = measure(texts, parse_flag)
    assert (coverage.rows, coverage.stated, coverage.complete) == (11, 8, 6)
    assert coverage.share == 0.75
    assert coverage.examples == ("maybe",)
    assert measure(pd.Series([""]), parse_flag).share == 1
