"""Token encoder: hand-checked tokens, statistics of training only, states that come back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.features.encoding.tokens import (
    CLIP_DEVIATIONS,
    FIRST_KNOWN,
    MAX_GRAMS,
    MISSING,
    UNKNOWN,
    TokenEncoder,
    grams_of,
)
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("available", Kind.DATE, Role.FEATURE, "system"),
    Column("vendor", Kind.CATEGORICAL, Role.FEATURE, "system"),
    Column("notes", Kind.TEXT, Role.FEATURE, "system"),
    Column("suite", Kind.CATEGORICAL, Role.KEY, "workload", tags=(Tag.TASK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "cores": [2.0, 8.0, 32.0, np.nan],
            "mhz": [2000.0, 2100.0, 2200.0, 2300.0],
            "available": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"]),
            "vendor": ["Acme", "Acme", "Bolt", None],
            "notes": ["a kernel 5.14", "a kernel 5.15", None, "other"],
            "suite": ["rate", "speed", "rate", "speed"],
            "part": ["p", "q", "r", "s"],
            "score": [1.0, 2.0, 3.0, 4.0],
        }
    )


def encoder(rows: pd.DataFrame | None = None, columns: tuple[Column, ...] = COLUMNS) -> TokenEncoder:
    return TokenEncoder().fit(frame() if rows is None else rows, columns)


def test_tokens_are_the_features_and_the_task_by_group_and_name() -> None:
    fitted = encoder()
    assert fitted.groups == ("processor", "system", "workload")
    assert [fitted.token_names(group) for group in fitted.groups] == [
        ["cores", "mhz"],
        ["available", "notes", "vendor"],
        ["suite"],
    ]
    assert fitted.spec.number_groups == [0, 0, 1]
    assert fitted.spec.category_groups == [1, 1, 2]


def test_numbers_are_standardized_with_the_fitted_rows_and_in_logs_where_they_span_much() -> None:
    tokens = encoder().transform(frame())
    logs = np.log([2.0, 8.0, 32.0])
    np.testing.assert_allclose(tokens.numbers[:3, 0], (logs - logs.mean()) / logs.std(), rtol=1e-6)
    mhz = frame()["mhz"]
    np.testing.assert_allclose(tokens.numbers[:, 1], (mhz - mhz.mean()) / mhz.std(ddof=0), rtol=1e-6)


def test_statistics_do_not_move_with_the_rows_to_encode() -> None:
    fitted = encoder()
    other = pd.concat([frame(), frame().assign(mhz=9000.0, vendor="Core")])
    np.testing.assert_array_equal(fitted.transform(other).numbers[:4], fitted.transform(frame()).numbers)
    np.testing.assert_array_equal(fitted.transform(other).codes[:4], fitted.transform(frame()).codes)


def test_missing_and_infinite_numbers_are_marked() -> None:
    rows = frame().assign(cores=[np.nan, np.inf, -np.inf, 8.0])
    tokens = encoder().transform(rows)
    assert tokens.missing[:, 0].tolist() == [1, 1, 1, 0]
    assert tokens.numbers[:3, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("value", "expected"), [(1e300, CLIP_DEVIATIONS), (0.0, -CLIP_DEVIATIONS), (-5.0, -CLIP_DEVIATIONS)]
)
def test_far_numbers_are_clipped(value: float, expected: float) -> None:
    assert encoder().transform(frame().assign(cores=value)).numbers[:, 0].tolist() == [expected] * 4


def test_a_column_without_information_makes_no_token() -> None:
    rows = frame().assign(cores=7.0, mhz=np.nan, vendor="Acme", notes=None)
    rows["notes"] = rows["notes"].astype("str").where(rows["notes"].notna())
    names = [name for group in encoder(rows).groups for name in encoder(rows).token_names(group)]
    assert names == ["available", "suite"]


def test_one_value_among_missing_ones_encodes_its_absence_alone() -> None:
    fitted = encoder(frame().assign(cores=[7.0, np.nan, 7.0, np.nan]))
    tokens = fitted.transform(frame().assign(cores=[1e9, np.nan, 7.0, 7.0]))
    assert tokens.numbers[:, 0].tolist() == [0, 0, 0, 0]
    assert tokens.missing[:, 0].tolist() == [0, 1, 0, 0]


def test_a_column_that_repeats_another_makes_no_token() -> None:
    columns = (*COLUMNS, Column("log_cores", Kind.NUMERICAL, Role.FEATURE, "processor"))
    fitted = encoder(frame().assign(log_cores=3 * np.log(frame()["cores"]) + 1), columns)
    assert fitted.token_names("processor") == ["cores", "mhz"]


def test_known_unknown_and_missing_categories_have_codes() -> None:
    fitted = encoder()
    rows = frame().assign(vendor=["Bolt", "never seen", None, "Acme"])
    assert fitted.transform(rows).codes[:, 1].tolist() == [FIRST_KNOWN + 1, UNKNOWN, MISSING, FIRST_KNOWN]
    assert fitted.spec.vocabulary_sizes == [2, 4, 4]


def test_text_is_known_by_its_grams_alone() -> None:
    assert encoder().transform(frame()).codes[:, 0].tolist() == [UNKNOWN, UNKNOWN, MISSING, UNKNOWN]


def test_an_unseen_string_shares_grams_with_the_known_ones_like_it() -> None:
    tokens = encoder().transform(frame().assign(notes=["a kernel 5.14", "a kernel 5.16", "####", None]))

    def grams(row: int) -> set[int]:
        return set(tokens.grams[tokens.strings[row, 0]].tolist()) - {0}

    assert len(grams(0) & grams(1)) > len(grams(0)) / 2
    assert grams(2) == set()
    assert tokens.strings[3, 0] == 0


def test_gram_ids_of_two_columns_differ() -> None:
    rows = frame().assign(notes=["Acme", "Acme", "Bolt", "Bolt"])
    tokens = encoder(rows).transform(rows)
    notes, vendors = (set(tokens.grams[tokens.strings[:, column]].ravel().tolist()) - {0} for column in (0, 1))
    assert notes
    assert vendors
    assert not notes & vendors


def test_dates_become_years() -> None:
    tokens = encoder().transform(frame())
    years = np.array([2020.0, 2021.0, 2022.0, 2023.0])
    np.testing.assert_allclose(tokens.numbers[:, 2], (years - years.mean()) / years.std(), atol=0.01)


def test_order_of_columns_does_not_matter() -> None:
    turned = TokenEncoder().fit(frame()[frame().columns[::-1]], COLUMNS[::-1])
    assert turned.to_state() == encoder().to_state()


def test_state_survives_json() -> None:
    fitted = encoder()
    again = TokenEncoder.from_state(json.loads(json.dumps(fitted.to_state())))
    for name, values in vars(fitted.transform(frame())).items():
        np.testing.assert_array_equal(vars(again.transform(frame()))[name], values)


def test_no_rows_and_no_columns_are_encoded() -> None:
    assert encoder().transform(frame().iloc[:0]).numbers.shape == (0, 3)
    empty = TokenEncoder().fit(frame(), ())
    assert empty.groups == ("none",)
    assert empty.transform(frame()).codes.shape == (4, 0)


def test_grams_mark_the_ends_and_fold_case_and_blanks() -> None:
    assert grams_of("Xeon") == ["^xe", "xeo", "eon", "on$"]
    assert grams_of("A  b") == grams_of("a b")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_string_has_few_distinct_grams(text: str) -> None:
    grams = grams_of(text)
    assert 1 <= len(grams) <= MAX_GRAMS
    assert len(set(grams)) == len(grams)


def test_a_number_that_hardly_varies_has_no_steep_slope() -> None:
    values = pd.DataFrame({"x": [32.0] * 9_999 + [64.0]})
    fitted = TokenEncoder().fit(values, [Column("x", Kind.NUMERICAL, Role.FEATURE, "all")])
    low, high = fitted.transform(values.iloc[-2:]).numbers[:, 0]
    assert 1 < high - low < 10
