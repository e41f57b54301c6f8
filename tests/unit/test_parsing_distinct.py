"""Coded columns say what plain ones say."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.data.parsing.distinct_texts import (
    by_distinct,
    codes_of,
    combinations,
    measure,
    parse_column,
    spread,
    value_counts,
)
from perfcast.data.parsing.scalars import parse_month, parse_number
from perfcast.data.parsing.storage import parse_storage

TEXTS = st.lists(st.sampled_from(["", "3", "17.5", "Jan-2020", "1 x 960 GB SATA SSD", "tmpfs", "N/A"]), max_size=25)


def coded(texts):
    # an unused category first: numbers of categories and order of appearance differ
    return pd.Series(pd.Categorical(texts, pd.Index(["never", *sorted(set(texts))[::-1]], dtype="str")))


@pytest.mark.parametrize("parse", [parse_number, parse_month, parse_storage])
@given(texts=TEXTS)
@settings(deadline=None, max_examples=60)
def test_a_coded_column_is_parsed_as_a_plain_one(parse, texts):
    plain = parse_column(pd.Series(texts, dtype="str"), parse)
    found = parse_column(coded(texts), parse)
    assert list(found) == list(plain)
    for name in plain:
        ours, theirs = found[name].astype("object"), plain[name].astype("object")
        assert [None if pd.isna(one) else one for one in ours] == [
            None if pd.isna(one) else pd.Timestamp(one) if isinstance(one, date) else one for one in theirs
        ]


def test_a_long_column_is_parsed_as_a_short_one(monkeypatch):
    texts = pd.Series(["3", "x", "17.5", "", "3"], dtype="str", index=[4, 2, 9, 1, 0])
    whole = parse_column(texts, parse_number, ["value"])
    monkeypatch.setattr("perfcast.data.parsing.distinct_texts._ROWS_AT_ONCE", 2)
    pd.testing.assert_frame_equal(parse_column(texts, parse_number, ["value"]), whole)


@given(texts=TEXTS)
@settings(deadline=None, max_examples=60)
def test_coverage_and_counts_are_those_of_the_plain_column(texts):
    plain = pd.Series(texts, dtype="str")
    assert measure(coded(texts), parse_storage) == measure(plain, parse_storage)
    assert list(value_counts(coded(texts)).items()) == list(plain.value_counts().items())


def test_every_distinct_text_is_asked_once_and_unused_ones_never():
    asked = []
    found = by_distinct(coded(["b", "a", "b"]), lambda text: asked.append(text) or len(asked))
    assert sorted(asked) == ["a", "b"]
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize(
    ("answers", "expected", "kind"),
    [
        (["x", None], ["x", None, None], "category"),
        ([1, None], [1.0, None, None], "float64"),
        ([None, None], [None, None, None], "float64"),
        ([True, None], [1.0, None, None], "float64"),
        ([date(2020, 5, 1), None], [pd.Timestamp(2020, 5, 1), None, None], "datetime64[us]"),
    ],
)
def test_answers_are_spread_by_their_kind(answers, expected, kind):
    found = spread(answers, np.array([0, 1, -1]), pd.RangeIndex(3))
    assert str(found.dtype) == kind
    assert [None if pd.isna(one) else one for one in found] == expected


def test_flags_that_are_all_known_stay_flags():
    assert spread([True, False], np.array([1, 0]), pd.RangeIndex(2)).tolist() == [False, True]


def test_equal_answers_of_different_texts_are_one_text():
    found = by_distinct(coded(["a", "A", "b"]), str.lower)
    assert found.tolist() == ["a", "a", "b"]
    assert found.cat.categories.is_unique


def test_a_missing_text_has_no_code():
    codes, texts = codes_of(pd.Series(pd.Categorical(["a", None, "a"])))
    assert (codes.tolist(), texts) == ([0, -1, 0], ["a"])


def test_combinations_are_numbered_as_they_appear():
    frame = pd.DataFrame(
        {"a": ["x", "y", "x", None, None], "b": [1.0, 2.0, 1.0, np.nan, np.nan]}, index=[5, 6, 7, 8, 9]
    )
    numbers, first = combinations(frame, ["a", "b"])
    assert (numbers.tolist(), first.tolist()) == ([0, 1, 0, 2, 2], [0, 1, 3])
    numbers, first = combinations(frame.iloc[:0], ["a", "b"])
    assert (len(numbers), len(first)) == (0, 0)
