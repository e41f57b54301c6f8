"""Dense and token encoders by hand: statistics of training only; derived columns with equal bytes everywhere."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy._core._multiarray_umath import __cpu_features__ as processor

from perfcast.features.encoding.columns import feature_columns, labels, numbers
from perfcast.features.encoding.dense import LinearEncoder, TreeEncoder
from perfcast.features.encoding.tokens import (
    CLIP_DEVIATIONS,
    FIRST_KNOWN,
    MAX_GRAMS,
    MISSING,
    UNKNOWN,
    TokenEncoder,
    grams_of,
)
from perfcast.features.feature_math import round_digits
from perfcast.schema.table import Column, Kind, Role, Tag, as_declared


def column(name: str, kind: Kind = Kind.NUMERICAL, role: Role = Role.FEATURE, *tags: Tag) -> Column:
    return Column(name, kind, role, "all", tags=tags)


def frame(columns: list[Column], **values: list[object]) -> pd.DataFrame:
    return pd.DataFrame({entry.name: as_declared(pd.Series(values[entry.name]), entry) for entry in columns})


NUMBER = [column("n")]
CATEGORY = [column("c", Kind.CATEGORICAL)]
DATE = [column("d", Kind.DATE)]


def encoded(encoder: LinearEncoder | TreeEncoder, columns: list[Column], **values: list[object]) -> np.ndarray:
    return encoder.transform(frame(columns, **values))


def test_feature_columns_are_sorted_features_without_text() -> None:
    given_columns = [
        column("z"),
        column("text", Kind.TEXT),
        column("a", Kind.CATEGORICAL),
        column("key", Kind.CATEGORICAL, Role.KEY, Tag.TASK),
        column("score", role=Role.TARGET),
        column("origin", Kind.CATEGORICAL, Role.PROVENANCE),
    ]
    assert [entry.name for entry in feature_columns(given_columns)] == ["a", "z"]
    assert [entry.name for entry in feature_columns(given_columns, task=True)] == ["a", "key", "z"]


def test_dates_are_decimal_years_infinite_numbers_and_empty_labels_are_missing() -> None:
    years = numbers(frame(DATE, d=["1970-01-01", "2020-07-01", None]), DATE[0])
    np.testing.assert_allclose(years, [1970.0, 2020.496, np.nan], atol=2e-3)
    assert np.isnan(numbers(frame(NUMBER, n=[np.inf, -np.inf]), NUMBER[0])).all()
    assert list(labels(frame(CATEGORY, c=["", None, "x"]), CATEGORY[0])) == [None, None, "x"]


@pytest.mark.parametrize(
    ("encoder", "trained", "rows", "expected"),
    [
        (LinearEncoder(), [1.0, np.e**2], [1.0, np.e, np.e**2], [-1, 0, 1]),
        (LinearEncoder(), [0.0, 2.0], [0.0, 1.0, 2.0], [-1, 0, 1]),
        (LinearEncoder(), [1.0, 2.0, 4.0], [-5.0, None, 2.0], [0, 0, 0]),
        (LinearEncoder(log=False), [1.0, 2.0, 3.0], [None, 2.0], [0, 0]),
        *((LinearEncoder(log=False), [value] * 7, [value, 2 * value + 1], [0, 0]) for value in (0.1, 7.0)),
        (LinearEncoder(), [None, None], [None, 5.0], [0, 0]),
        (LinearEncoder(log=False, clip=1.0), [0.0, 1.0], [2.0, 1e12, -1.0, -1e12], [3, 3, -3, -3]),
        (TreeEncoder(), [1.0, 2.0], [3.5, None], [3.5, np.nan]),
        (TreeEncoder(impute=True), [-2.0, 5.0, None], [None, 1.0], [-9.0, 1.0]),
    ],
    ids=[
        "logarithms of positive columns",
        "linear with a zero",
        "negative is missing",
        "missing is the median",
        *["constant is zero"] * 2,
        "never present is zero",
        "clipped to the widened range",
        "trees keep numbers and missing",
        "imputed below everything seen",
    ],
)
def test_numbers(encoder: LinearEncoder | TreeEncoder, trained: list, rows: list, expected: list) -> None:
    fitted = encoder.fit(frame(NUMBER, n=trained), NUMBER)
    np.testing.assert_allclose(encoded(fitted, NUMBER, n=rows)[:, 0], expected, atol=1e-9)
    assert fitted.names_[:1] == ["n"]


def test_missing_has_an_indicator_where_training_missed_some_and_is_imputed_where_it_knew_none() -> None:
    encoder = LinearEncoder(log=False).fit(frame(NUMBER, n=[1.0, 2.0, 9.0, None]), NUMBER)
    assert encoder.names_ == ["n", "n=missing"]
    assert encoded(encoder, NUMBER, n=[None, 2.0])[:, 1].tolist() == [1.0, 0.0]
    assert LinearEncoder().fit(frame(NUMBER, n=[1.0, 2.0]), NUMBER).names_ == ["n"]
    never = TreeEncoder(impute=True).fit(frame(NUMBER, n=[None]), NUMBER)
    assert np.isfinite(encoded(never, NUMBER, n=[None, 1.0])).all()


def test_rare_and_unknown_values_share_one_output_or_code_and_missing_has_its_own() -> None:
    encoder = LinearEncoder(min_count=2).fit(frame(CATEGORY, c=["b", "b", "a", "a", "z", None]), CATEGORY)
    assert encoder.names_ == ["c='a'", "c='b'", "c=rare", "c=missing"]
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(encoded(encoder, CATEGORY, c=["a", "b", "z", "new", None]), expected)
    encoder = LinearEncoder(min_count=1).fit(frame(CATEGORY, c=["a", "b"]), CATEGORY)
    assert (encoded(encoder, CATEGORY, c=["new", None]) == 0).all(), "without rare ones all are zero"
    trees = TreeEncoder(min_count=2).fit(frame(CATEGORY, c=["b", "b", "a", "a", "rare"]), CATEGORY)
    assert encoded(trees, CATEGORY, c=[None, "new", "rare", "a", "b"])[:, 0].tolist() == [0, 1, 1, 2, 3]


@settings(max_examples=100, deadline=None)
@given(
    train=st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=1, max_size=12),
    test=st.lists(st.one_of(st.none(), st.floats(width=32)), max_size=6),
)
def test_linear_outputs_are_always_finite_and_bounded(train: list[float | None], test: list[float | None]) -> None:
    data = frame(NUMBER, n=train)
    encoder = LinearEncoder().fit(data, NUMBER)
    made = encoded(encoder, NUMBER, n=test)
    assert made.shape == (len(test), len(encoder.names_))
    assert np.isfinite(made).all()
    # The clipped range is three training ranges wide, and the spread is at least range / (2 n).
    assert (np.abs(made) <= 6 * max(1, len(train))).all()


def test_a_column_that_hardly_varies_has_no_steep_slope() -> None:
    encoder = LinearEncoder(log=False).fit(frame(NUMBER, n=[*[32.0] * 9_999, 64.0]), NUMBER)
    low, high = encoded(encoder, NUMBER, n=[32.0, 64.0])[:, 0]
    assert 1 < high - low < 10


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


def machines() -> pd.DataFrame:
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
    return TokenEncoder().fit(machines() if rows is None else rows, columns)


def token_names(fitted: TokenEncoder, group: str) -> list[str]:
    """Return the columns of a group in the order that networks see them."""
    return [token.name for token in (*fitted.numbers, *fitted.categories) if token.group == group]


def test_tokens_are_the_features_and_the_task_by_group_and_name() -> None:
    fitted = encoder()
    assert fitted.groups == ("processor", "system", "workload")
    names = [["cores", "mhz"], ["available", "notes", "vendor"], ["suite"]]
    assert [token_names(fitted, group) for group in fitted.groups] == names
    assert fitted.spec.number_groups == [0, 0, 1]
    assert fitted.spec.category_groups == [1, 1, 2]


def test_numbers_and_years_are_standardized_with_the_fitted_rows_alone_and_in_logs_where_they_span_much() -> None:
    fitted = encoder()
    tokens = fitted.transform(pd.concat([machines(), machines().assign(mhz=9000.0, vendor="Core")]))
    np.testing.assert_array_equal(tokens.codes[:4], fitted.transform(machines()).codes)
    values = (np.log([2.0, 8.0, 32.0]), machines()["mhz"].to_numpy(), np.arange(2020.0, 2024.0))
    for column, known in enumerate(values):
        expected = (known - known.mean()) / known.std()
        np.testing.assert_allclose(tokens.numbers[: len(known), column], expected, rtol=1e-6, atol=0.01 * (column == 2))


def test_missing_and_infinite_numbers_are_marked() -> None:
    rows = machines().assign(cores=[np.nan, np.inf, -np.inf, 8.0])
    tokens = encoder().transform(rows)
    assert tokens.missing[:, 0].tolist() == [1, 1, 1, 0]
    assert tokens.numbers[:3, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("value", "expected"), [(1e300, CLIP_DEVIATIONS), (0.0, -CLIP_DEVIATIONS), (-5.0, -CLIP_DEVIATIONS)]
)
def test_far_numbers_are_clipped(value: float, expected: float) -> None:
    assert encoder().transform(machines().assign(cores=value)).numbers[:, 0].tolist() == [expected] * 4


def test_columns_without_information_or_that_repeat_another_make_no_token() -> None:
    rows = machines().assign(cores=7.0, mhz=np.nan, vendor="Acme", notes=pd.Series([None] * 4, dtype="str"))
    fitted = encoder(rows)
    assert [name for group in fitted.groups for name in token_names(fitted, group)] == ["available", "suite"]
    columns = (*COLUMNS, Column("log_cores", Kind.NUMERICAL, Role.FEATURE, "processor"))
    fitted = encoder(machines().assign(log_cores=3 * np.log(machines()["cores"]) + 1), columns)
    assert token_names(fitted, "processor") == ["cores", "mhz"]
    # one value among missing ones encodes its absence alone
    fitted = encoder(machines().assign(cores=[7.0, np.nan, 7.0, np.nan]))
    tokens = fitted.transform(machines().assign(cores=[1e9, np.nan, 7.0, 7.0]))
    assert tokens.numbers[:, 0].tolist() == [0, 0, 0, 0]
    assert tokens.missing[:, 0].tolist() == [0, 1, 0, 0]


def test_known_unknown_and_missing_categories_have_codes_and_text_is_known_by_its_grams_alone() -> None:
    fitted = encoder()
    codes = fitted.transform(machines().assign(vendor=["Bolt", "never seen", None, "Acme"])).codes
    assert codes[:, 1].tolist() == [FIRST_KNOWN + 1, UNKNOWN, MISSING, FIRST_KNOWN]
    assert codes[:, 0].tolist() == [UNKNOWN, UNKNOWN, MISSING, UNKNOWN]
    assert fitted.spec.vocabulary_sizes == [2, 4, 4]


def test_an_unseen_string_shares_grams_with_the_known_ones_like_it() -> None:
    tokens = encoder().transform(machines().assign(notes=["a kernel 5.14", "a kernel 5.16", "####", None]))

    def grams(row: int) -> set[int]:
        return set(tokens.grams[tokens.strings[row, 0]].tolist()) - {0}

    assert len(grams(0) & grams(1)) > len(grams(0)) / 2
    assert grams(2) == set()
    assert tokens.strings[3, 0] == 0


def test_gram_ids_of_two_columns_differ_mark_the_ends_and_fold_case_and_blanks() -> None:
    rows = machines().assign(notes=["Acme", "Acme", "Bolt", "Bolt"])
    tokens = encoder(rows).transform(rows)
    notes, vendors = (set(tokens.grams[tokens.strings[:, column]].ravel().tolist()) - {0} for column in (0, 1))
    assert notes and vendors and not notes & vendors
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


OF_LOGARITHMS = """
import hashlib
import numpy as np
import pandas as pd
from perfcast.features.feature_math import append, append_logs, feature, log
from perfcast.schema.table import build_table

values = pd.Series(np.random.default_rng(0).lognormal(3, 2, 20_000))
table = build_table("any", pd.DataFrame({"x": values}), [feature("x", "any", "", "any")])
table = append(table, [feature("power", "any", "", "any")], {"power": np.exp(log(values) / 3)})
table = append_logs(table, ["power"])
print(hashlib.sha256(table.frame.to_numpy().tobytes()).hexdigest())
"""

round_one = np.vectorize(lambda value: round_digits(np.array([value]))[0])


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30))
def test_ten_digits_are_exact(value: float) -> None:
    once = float(round_one(value))
    assert once == pytest.approx(value, rel=5.01e-10, abs=1e-40)
    assert round_one(-value) == -once


@pytest.mark.parametrize("value", [0.0, 0.1 + 0.2, 16777217.0, 1e-9])
def test_a_short_decimal_is_exact_and_missing_stays_missing(value: float) -> None:
    expected = [float(f"{value:.10g}")] * 2 + [np.nan]
    np.testing.assert_array_equal(round_digits(np.array([value, np.nextafter(value, np.inf), np.nan])), expected)


@pytest.mark.skipif(not processor.get("X86_V4"), reason="this processor has no AVX-512 to be left out")
def test_logarithms_of_another_vector_unit_give_the_same_bytes() -> None:
    def bytes_on(**unit: str) -> str:
        command = [sys.executable, "-c", OF_LOGARITHMS]
        return subprocess.run(command, env={**os.environ, **unit}, capture_output=True, text=True, check=True).stdout

    assert bytes_on() == bytes_on(NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR")
