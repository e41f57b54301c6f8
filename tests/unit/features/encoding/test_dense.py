"""Dense encoders: hand-checked values, statistics of training only, states that come back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.features.encoding.columns import feature_columns, labels, numbers
from perfcast.features.encoding.dense import LinearEncoder, TreeEncoder
from perfcast.schema.table import Column, Kind, Role, Tag, as_declared


def column(name: str, kind: Kind = Kind.NUMERICAL, role: Role = Role.FEATURE, *tags: Tag) -> Column:
    return Column(name, kind, role, "all", tags=tags)


def frame(columns: list[Column], **values: list[object]) -> pd.DataFrame:
    return pd.DataFrame({entry.name: as_declared(pd.Series(values[entry.name]), entry) for entry in columns})


NUMBER = [column("n")]
CATEGORY = [column("c", Kind.CATEGORICAL)]
DATE = [column("d", Kind.DATE)]


def test_feature_columns_are_sorted_features_without_text() -> None:
    given_columns = [
        column("z"),
        column("text", Kind.TEXT),
        column("a", Kind.CATEGORICAL),
        column("key", Kind.CATEGORICAL, Role.KEY, Tag.TASK),
        column("score", Kind.NUMERICAL, Role.TARGET),
        column("origin", Kind.CATEGORICAL, Role.PROVENANCE),
    ]
    assert [entry.name for entry in feature_columns(given_columns)] == ["a", "z"]
    assert [entry.name for entry in feature_columns(given_columns, task=True)] == ["a", "key", "z"]


def test_dates_are_decimal_years() -> None:
    data = frame(DATE, d=["1970-01-01", "2020-07-01", None])
    years = numbers(data, DATE[0])
    assert years[0] == 1970.0
    assert years[1] == pytest.approx(2020.496, abs=2e-3)
    assert np.isnan(years[2])


def test_infinite_numbers_are_missing() -> None:
    assert np.isnan(numbers(frame(NUMBER, n=[np.inf, -np.inf]), NUMBER[0])).all()


def test_empty_labels_are_missing() -> None:
    assert list(labels(frame(CATEGORY, c=["", None, "x"]), CATEGORY[0])) == [None, None, "x"]


class TestLinear:
    def test_standardizes_logarithms_of_positive_columns(self) -> None:
        encoder = LinearEncoder().fit(frame(NUMBER, n=[1.0, np.e**2]), NUMBER)
        np.testing.assert_allclose(encoder.transform(frame(NUMBER, n=[1.0, np.e, np.e**2]))[:, 0], [-1, 0, 1])

    def test_a_column_with_zero_stays_linear(self) -> None:
        encoder = LinearEncoder().fit(frame(NUMBER, n=[0.0, 2.0]), NUMBER)
        np.testing.assert_allclose(encoder.transform(frame(NUMBER, n=[0.0, 1.0, 2.0]))[:, 0], [-1, 0, 1])

    def test_a_negative_value_of_a_logarithmic_column_is_missing(self) -> None:
        encoder = LinearEncoder().fit(frame(NUMBER, n=[1.0, 2.0, 4.0]), NUMBER)
        encoded = encoder.transform(frame(NUMBER, n=[-5.0, 2.0]))
        assert encoded[0] == encoded[1]

    def test_missing_is_the_median_with_an_indicator(self) -> None:
        encoder = LinearEncoder(log=False).fit(frame(NUMBER, n=[1.0, 2.0, 9.0, None]), NUMBER)
        assert encoder.names_ == ["n", "n=missing"]
        encoded = encoder.transform(frame(NUMBER, n=[None, 2.0]))
        assert encoded[0, 0] == encoded[1, 0]
        assert list(encoded[:, 1]) == [1.0, 0.0]

    def test_no_indicator_where_training_missed_nothing(self) -> None:
        encoder = LinearEncoder().fit(frame(NUMBER, n=[1.0, 2.0]), NUMBER)
        assert encoder.names_ == ["n"]
        assert np.isfinite(encoder.transform(frame(NUMBER, n=[None]))).all()

    @pytest.mark.parametrize("value", [0.1, 0.3, 1e9, 7.0])
    def test_a_constant_column_is_zero(self, value: float) -> None:
        encoder = LinearEncoder(log=False).fit(frame(NUMBER, n=[value] * 7), NUMBER)
        assert (encoder.transform(frame(NUMBER, n=[value, 2 * value + 1])) == 0).all()

    def test_a_column_never_present_is_zero(self) -> None:
        encoder = LinearEncoder().fit(frame(NUMBER, n=[None, None]), NUMBER)
        assert (encoder.transform(frame(NUMBER, n=[None, 5.0])) == 0).all()

    def test_values_far_outside_are_clipped_to_the_widened_range(self) -> None:
        encoder = LinearEncoder(log=False, clip=1.0).fit(frame(NUMBER, n=[0.0, 1.0]), NUMBER)
        encoded = encoder.transform(frame(NUMBER, n=[2.0, 1e12, -1.0, -1e12]))[:, 0]
        assert encoded[0] == encoded[1]
        assert encoded[2] == encoded[3]

    def test_rare_and_unknown_values_share_one_output(self) -> None:
        encoder = LinearEncoder(min_count=2).fit(frame(CATEGORY, c=["b", "b", "a", "a", "z", None]), CATEGORY)
        assert encoder.names_ == ["c='a'", "c='b'", "c=rare", "c=missing"]
        encoded = encoder.transform(frame(CATEGORY, c=["a", "b", "z", "new", None]))
        expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
        np.testing.assert_array_equal(encoded, expected)

    def test_an_unknown_value_without_rare_ones_is_all_zeros(self) -> None:
        encoder = LinearEncoder(min_count=1).fit(frame(CATEGORY, c=["a", "b"]), CATEGORY)
        assert (encoder.transform(frame(CATEGORY, c=["new", None])) == 0).all()


class TestTrees:
    def test_numbers_stay_and_missing_stays(self) -> None:
        encoder = TreeEncoder().fit(frame(NUMBER, n=[1.0, 2.0]), NUMBER)
        np.testing.assert_array_equal(encoder.transform(frame(NUMBER, n=[3.5, None]))[:, 0], [3.5, np.nan])

    def test_imputed_missing_lies_below_everything_seen(self) -> None:
        encoder = TreeEncoder(impute=True).fit(frame(NUMBER, n=[-2.0, 5.0, None]), NUMBER)
        assert encoder.transform(frame(NUMBER, n=[None]))[0, 0] == -9.0

    def test_a_column_never_present_is_imputed(self) -> None:
        encoder = TreeEncoder(impute=True).fit(frame(NUMBER, n=[None]), NUMBER)
        assert np.isfinite(encoder.transform(frame(NUMBER, n=[None, 1.0]))).all()

    def test_missing_and_unknown_categories_have_codes_of_their_own(self) -> None:
        encoder = TreeEncoder(min_count=2).fit(frame(CATEGORY, c=["b", "b", "a", "a", "rare"]), CATEGORY)
        encoded = encoder.transform(frame(CATEGORY, c=[None, "new", "rare", "a", "b"]))[:, 0]
        assert list(encoded) == [0, 1, 1, 2, 3]


MIXED = [column("z"), *CATEGORY, *DATE]
MIXED_ROWS = frame(
    MIXED, z=[1.0, None, 3.0, 1 / 3], c=["u", "u", None, "v"], d=["2020-01-01", None, "2021-05-01", None]
)


@pytest.mark.parametrize("encoder", [LinearEncoder(min_count=2), TreeEncoder(), TreeEncoder(impute=True)])
class TestBoth:
    def test_state_is_json_and_comes_back(self, encoder: LinearEncoder | TreeEncoder) -> None:
        encoder.fit(MIXED_ROWS, MIXED)
        state = json.loads(json.dumps(encoder.to_state(), allow_nan=False))
        other = type(encoder).from_state(state, MIXED[::-1])
        assert other.names_ == encoder.names_
        assert other.to_state() == encoder.to_state()
        np.testing.assert_array_equal(other.transform(MIXED_ROWS), encoder.transform(MIXED_ROWS))

    def test_order_of_columns_does_not_matter(self, encoder: LinearEncoder | TreeEncoder) -> None:
        expected = encoder.fit(MIXED_ROWS, MIXED).transform(MIXED_ROWS)
        shuffled = MIXED_ROWS[MIXED_ROWS.columns[::-1]]
        np.testing.assert_array_equal(encoder.fit(shuffled, MIXED[::-1]).transform(shuffled), expected)

    def test_transform_learns_nothing(self, encoder: LinearEncoder | TreeEncoder) -> None:
        before = encoder.fit(MIXED_ROWS, MIXED).to_state()
        encoder.transform(frame(MIXED, z=[99.0], c=["w"], d=["2030-01-01"]))
        assert encoder.to_state() == before

    def test_width_matches_names(self, encoder: LinearEncoder | TreeEncoder) -> None:
        assert encoder.fit(MIXED_ROWS, MIXED).transform(MIXED_ROWS).shape == (4, len(encoder.names_))

    def test_no_columns_give_no_outputs(self, encoder: LinearEncoder | TreeEncoder) -> None:
        assert encoder.fit(MIXED_ROWS, []).transform(MIXED_ROWS).shape == (4, 0)


@settings(max_examples=100, deadline=None)
@given(
    train=st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=1, max_size=12),
    test=st.lists(st.one_of(st.none(), st.floats(width=32)), max_size=6),
)
def test_linear_outputs_are_always_finite_and_bounded(train: list[float | None], test: list[float | None]) -> None:
    data = frame(NUMBER, n=train)
    encoder = LinearEncoder().fit(data, NUMBER)
    encoded = encoder.transform(frame(NUMBER, n=test))
    assert encoded.shape == (len(test), len(encoder.names_))
    assert np.isfinite(encoded).all()
    # The clipped range is three training ranges wide, and the spread is at least range / (2 n).
    assert (np.abs(encoded) <= 6 * max(1, len(train))).all()


def test_a_column_that_hardly_varies_has_no_steep_slope() -> None:
    usual = [32.0] * 9_999
    encoder = LinearEncoder(log=False).fit(frame(NUMBER, n=[*usual, 64.0]), NUMBER)
    low, high = encoder.transform(frame(NUMBER, n=[32.0, 64.0]))[:, 0]
    assert 1 < high - low < 10


def test_a_column_that_varies_is_standardized() -> None:
    encoder = LinearEncoder(log=False).fit(frame(NUMBER, n=[0.0, 1.0, 2.0, 3.0]), NUMBER)
    assert encoder.transform(frame(NUMBER, n=[0.0, 1.0, 2.0, 3.0])).std() == pytest.approx(1)
