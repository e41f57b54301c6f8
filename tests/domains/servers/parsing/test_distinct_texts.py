"""Columns: every distinct text is parsed once, coded or not; numbers and texts keep their kinds."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.parsing.cache import parse_l2, parse_l3
from perfcast.domains.servers.parsing.distinct_texts import (
    count_texts,
    encode_texts,
    expand_codes,
    map_distinct,
    number_combinations,
    parse_column,
)
from perfcast.domains.servers.parsing.scalars import parse_flag, parse_month, parse_number
from perfcast.domains.servers.parsing.software import parse_storage

TEXTS = st.lists(st.sampled_from(["", "3", "17.5", "Jan-2020", "1 x 960 GB SATA SSD", "tmpfs", "N/A"]), max_size=25)


def coded(texts):
    # an unused category first: numbers of categories and order of appearance differ
    return pd.Series(pd.Categorical(texts, pd.Index(["never", *sorted(set(texts))[::-1]], dtype="str")))


@pytest.mark.parametrize(
    ("parse", "names"),
    [(parse_number, ["value"]), (parse_month, ["value"]), (parse_storage, ["storage_class", "storage_gb"])],
)
@given(texts=TEXTS)
@settings(deadline=None, max_examples=60)
def test_a_coded_column_is_parsed_as_a_plain_one(parse, names, texts):
    plain = parse_column(pd.Series(texts, dtype="str"), parse, names)
    column = parse_column(coded(texts), parse, names)
    assert list(column) == list(plain)
    for name in plain:
        ours, theirs = column[name].astype("object"), plain[name].astype("object")
        assert [None if pd.isna(value) else value for value in ours] == [
            None if pd.isna(value) else pd.Timestamp(value) if isinstance(value, date) else value for value in theirs
        ]


def test_a_long_column_is_parsed_as_a_short_one(monkeypatch):
    texts = pd.Series(["3", "x", "17.5", "", "3"], dtype="str", index=[4, 2, 9, 1, 0])
    whole = parse_column(texts, parse_number, ["value"])
    monkeypatch.setattr("perfcast.domains.servers.parsing.distinct_texts._ROWS_AT_ONCE", 2)
    pd.testing.assert_frame_equal(parse_column(texts, parse_number, ["value"]), whole)


@given(texts=TEXTS)
@settings(deadline=None, max_examples=60)
def test_counts_are_those_of_the_plain_column(texts):
    plain = pd.Series(texts, dtype="str")
    assert list(count_texts(coded(texts)).items()) == list(plain.value_counts().items())


def test_every_distinct_text_is_mapped_once_and_unused_ones_never():
    calls = []
    column = map_distinct(coded(["b", "a", "b"]), lambda text: calls.append(text) or len(calls))
    assert sorted(calls) == ["a", "b"]
    assert column[0] == column[2] != column[1]


@pytest.mark.parametrize(
    ("results", "expected", "kind"),
    [
        (["x", None], ["x", None, None], "category"),
        ([1, None], [1.0, None, None], "float64"),
        ([None, None], [None, None, None], "float64"),
        ([True, None], [1.0, None, None], "float64"),
        ([date(2020, 5, 1), None], [pd.Timestamp(2020, 5, 1), None, None], "datetime64[us]"),
    ],
)
def test_codes_are_expanded_by_the_kind_of_result(results, expected, kind):
    column = expand_codes(results, np.array([0, 1, -1]), pd.RangeIndex(3))
    assert str(column.dtype) == kind
    assert [None if pd.isna(value) else value for value in column] == expected


def test_flags_that_are_all_known_stay_flags():
    assert expand_codes([True, False], np.array([1, 0]), pd.RangeIndex(2)).tolist() == [False, True]


def test_equal_results_of_different_texts_are_one_text():
    column = map_distinct(coded(["a", "A", "b"]), str.lower)
    assert column.tolist() == ["a", "a", "b"]
    assert column.cat.categories.is_unique


def test_a_missing_text_has_no_code():
    codes, texts = encode_texts(pd.Series(pd.Categorical(["a", None, "a"])))
    assert (codes.tolist(), texts) == ([0, -1, 0], ["a"])


def test_combinations_are_numbered_as_they_appear():
    frame = pd.DataFrame(
        {"a": ["x", "y", "x", None, None], "b": [1.0, 2.0, 1.0, np.nan, np.nan]}, index=[5, 6, 7, 8, 9]
    )
    numbers, first = number_combinations(frame, ["a", "b"])
    assert (numbers.tolist(), first.tolist()) == ([0, 1, 0, 2, 2], [0, 1, 3])
    numbers, first = number_combinations(frame.iloc[:0], ["a", "b"])
    assert (len(numbers), len(first)) == (0, 0)


def test_a_column_keeps_its_index_and_parses_each_text_once():
    texts = pd.Series(["3 MB I+D on chip per core", None, "3 MB I+D on chip per core"], index=[7, 3, 5])
    calls = []

    def parse(text):
        calls.append(text)
        return parse_l2(text)

    frame = parse_column(texts, parse, ["l2_kb_per_core", "l2_scope"])
    assert sorted(text for text in calls if text) == ["3 MB I+D on chip per core"]
    assert list(frame.index) == [7, 3, 5]
    np.testing.assert_array_equal(frame["l2_kb_per_core"], [3072, np.nan, 3072])
    assert frame["l2_scope"].fillna("missing").tolist() == ["core", "missing", "core"]


def test_flags_become_numbers():
    frame = parse_column(pd.Series(["Yes", "No", "?"]), parse_flag)
    np.testing.assert_array_equal(frame["value"], [1, 0, np.nan])


def test_an_empty_column_gives_all_fields():
    frame = parse_column(pd.Series([], dtype=str), parse_l3, ["l3_mb_per_chip"])
    assert len(frame) == 0
    assert "l3_mb_per_chip" in frame
