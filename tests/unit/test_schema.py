"""The self-describing table, and its sequence columns: round trips, missing cells, code that must not see them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factory import decode_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.data.standardized import column_quality
from perfcast.features.encoding.columns import feature_columns
from perfcast.predictors.baselines import NearestPredictor
from perfcast.schema.sequences import comparable, from_matrix, is_sequence, to_matrix
from perfcast.schema.table import (
    Column,
    Kind,
    Role,
    Tag,
    build_table,
    infer_columns,
    out_of_bounds,
    require_usable_numbers,
)
from perfcast.schema.table_files import content_digest, count_row_groups, read_table, write_table, write_tables
from perfcast.splits.checks import check_duplicates
from perfcast.splits.row_groups import by_features
from perfcast.utils.errors import UserError
from perfcast.utils.io import sha256

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor", "MHz", "clock", 100, 6000),
    Column("vendor", Kind.CATEGORICAL, Role.FEATURE, "system"),
    Column("month", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


def frame(**changes):
    values = {
        "id": ["a", "b"],
        "mhz": [2000, None],
        "vendor": [None, "X"],
        "month": ["2020-01-01", None],
        "score": [1.5, 2.5],
    }
    return pd.DataFrame({**values, **changes})


def test_round_trip_keeps_declarations_types_and_missing(tmp_path):
    table = build_table("demo", frame(), COLUMNS, {"rows": 2})
    write_table(table, tmp_path / "t.parquet")
    again = read_table(tmp_path / "t.parquet")
    assert again.columns == table.columns
    assert again.facts == {"rows": 2}
    pd.testing.assert_frame_equal(again.frame, table.frame)
    assert again.frame["vendor"].isna().tolist() == [True, False]
    write_table(build_table("demo", frame(), COLUMNS, {"rows": 2}), tmp_path / "other")
    assert sha256(tmp_path / "t.parquet") == sha256(tmp_path / "other"), "equal tables give equal bytes"


def test_the_digest_of_a_table_is_that_of_its_cells(tmp_path):
    table = build_table("demo", frame(), COLUMNS)
    write_table(table, tmp_path / "t.parquet")
    assert content_digest(read_table(tmp_path / "t.parquet", coded=True)) == content_digest(table)
    for name, values in {"id": ["a", "c"], "mhz": [2000, 2001], "vendor": ["X", None], "score": [1.5, 2.6]}.items():
        other = build_table("demo", frame(**{name: values}), COLUMNS)
        assert content_digest(other) != content_digest(table), name


def test_coded_texts_are_written_and_read_as_texts(tmp_path):
    written = frame(vendor=pd.Categorical([None, "X"], pd.Index(["unused", "X"], dtype="str")))
    coded = build_table("demo", written, COLUMNS)
    assert str(coded.frame["vendor"].dtype) == "category"
    write_table(coded, tmp_path / "coded")
    write_table(build_table("demo", frame(), COLUMNS), tmp_path / "plain")
    assert sha256(tmp_path / "coded") == sha256(tmp_path / "plain")
    read = read_table(tmp_path / "coded", coded=True)
    assert {name: str(read.frame[name].dtype) for name in ("id", "vendor")} == {"id": "str", "vendor": "category"}
    pd.testing.assert_frame_equal(decode_texts(read).frame, read_table(tmp_path / "plain").frame)
    assert decode_texts(read).columns == read.columns


def test_only_wanted_columns_are_read(tmp_path):
    write_table(build_table("demo", frame(), COLUMNS), tmp_path / "t")
    table = read_table(tmp_path / "t", wanted=lambda column: column.role is Role.FEATURE)
    assert list(table.frame) == [column.name for column in table.columns] == ["mhz", "vendor"]
    assert len(read_table(tmp_path / "t", wanted=lambda column: False).frame) == 2


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5])
def test_a_table_taken_by_groups_of_rows_is_the_whole_one(tmp_path, monkeypatch, rows):
    monkeypatch.setattr("perfcast.schema.table_files.ROWS_OF_GROUP", 2)
    names = [f"r{number}" for number in range(rows)]
    table = build_table("demo", pd.concat([frame()] * 3).iloc[:rows].assign(id=names), COLUMNS)
    write_table(table, tmp_path / "whole")
    count = count_row_groups(tmp_path / "whole")
    assert count == max(1, (rows + 1) // 2)
    write_tables((read_table(tmp_path / "whole", group=number) for number in range(count)), tmp_path / "parts")
    pd.testing.assert_frame_equal(read_table(tmp_path / "parts").frame, table.frame)
    assert sha256(tmp_path / "parts") == sha256(tmp_path / "whole")


def test_selection_by_role_kind_group_and_tag():
    table = build_table("demo", frame(), COLUMNS)
    assert table.select(role=Role.FEATURE) == ["mhz", "vendor"]
    assert table.select(role=Role.FEATURE, kind=Kind.NUMERICAL) == ["mhz"]
    assert table.select(group="system") == ["vendor"]
    assert table.column_of(Tag.TIME) == "month"
    with pytest.raises(UserError, match=r"exactly one column with Tag\.TASK, but it has none; correct the tags"):
        table.column_of(Tag.TASK)


def test_derived_columns_are_appended_and_never_overwrite():
    table = build_table("demo", frame(), COLUMNS)
    ghz = Column("ghz", Kind.NUMERICAL, Role.FEATURE, "processor", "GHz")
    more = table.with_columns([(ghz, table.frame["mhz"] / 1000)])
    assert more.frame["ghz"].iloc[0] == 2.0
    with pytest.raises(ValueError, match="exists"):
        more.with_columns([(ghz, table.frame["mhz"])])


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_out_of_bounds_marks_exactly_what_is_outside(values):
    size = len(values)
    table = build_table(
        "demo",
        pd.DataFrame({"id": list(map(str, range(size))), "mhz": values, "vendor": "X", "month": None, "score": 1.0}),
        COLUMNS,
    )
    expected = [value is not None and not 100 <= value <= 6000 for value in values]
    assert out_of_bounds(table)["mhz"].tolist() == expected


def test_a_file_that_is_no_table_is_told_in_one_line(tmp_path):
    (tmp_path / "x.parquet").write_text("nonsense")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "plain.parquet")
    for name, words in {"none": "no such file", "x.parquet": "is not", "plain.parquet": "has none"}.items():
        with pytest.raises(UserError, match=words) as raised:
            read_table(tmp_path / name)
        assert "\n" not in str(raised.value)


def test_plain_frames_are_declared_by_their_types():
    plain = pd.DataFrame({"a": [1], "b": ["x"], "c": pd.to_datetime(["2020-01-01"]), "y": [np.pi]})
    kinds = {column.name: (column.kind, column.role) for column in infer_columns(plain, ["y"])}
    assert kinds["a"] == (Kind.NUMERICAL, Role.FEATURE)
    assert kinds["b"][0] is Kind.CATEGORICAL
    assert kinds["c"][0] is Kind.DATE
    assert kinds["y"][1] is Role.TARGET
    assert infer_columns(pd.DataFrame({"load": from_matrix(np.ones((2, 3)))}))[0].kind is Kind.SEQUENCE


SEQUENCE_COLUMNS = (
    Column("row", Kind.TEXT, Role.KEY, "run", tags=(Tag.ROW,)),
    Column("size", Kind.NUMERICAL, Role.FEATURE, "run"),
    Column("load", Kind.SEQUENCE, Role.FEATURE, "cpu"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "run"),
)
MATRIX = np.array([[1, 2, np.nan], [3, 4, 5], [1, 2, np.nan], [0, 0, 0]], dtype="float32")


def table(matrix=MATRIX):
    rows = len(matrix)
    frame = pd.DataFrame(
        {"row": [f"r{i}" for i in range(rows)], "size": 1.0, "load": from_matrix(matrix), "score": 2.0}
    )
    return build_table("tiny", frame, SEQUENCE_COLUMNS)


def test_numbers_survive_selection_and_files(tmp_path: Path) -> None:
    made = table()
    write_table(made, tmp_path / "table.parquet")
    again = read_table(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(again.frame, made.frame)
    assert again.columns == SEQUENCE_COLUMNS
    assert content_digest(again) == content_digest(made) != content_digest(table(MATRIX + 1))
    np.testing.assert_array_equal(to_matrix(again.frame["load"].iloc[[3, 1]]), MATRIX[[3, 1]])
    np.testing.assert_array_equal(
        to_matrix(again.frame.loc[np.array([True, False, True, False]), "load"]), MATRIX[[0, 2]]
    )


def test_lists_and_missing_cells_become_sequences() -> None:
    frame = pd.DataFrame({"row": ["a", "b"], "size": 1.0, "load": [[1, 2], None], "score": 1.0})
    typed = build_table("tiny", frame, SEQUENCE_COLUMNS).frame["load"]
    assert is_sequence(typed.dtype)
    np.testing.assert_array_equal(to_matrix(typed), [[1, 2], [np.nan, np.nan]])
    np.testing.assert_array_equal(to_matrix(typed.reindex([1, 0, 7])), [[np.nan] * 2, [1, 2], [np.nan] * 2])
    assert to_matrix(typed.iloc[:0]).shape == (0, 2)
    with pytest.raises(ValueError, match="differ in length: 1, 2"):
        to_matrix(pd.Series([[1, 2], [3]], name="load"))


def test_an_infinite_number_is_named_with_its_row() -> None:
    broken = MATRIX.copy()
    broken[2, 1] = np.inf
    with pytest.raises(UserError, match="load is inf in row 3"):
        require_usable_numbers(table(broken).frame, SEQUENCE_COLUMNS, "the table")


def test_rows_are_compared_by_their_sequences() -> None:
    assert by_features(table()).tolist() == [0, 1, 0, 2]
    signed = comparable(table(MATRIX * np.float32(-0.0)).frame, ["load"])  # all zeros or missing
    assert signed.iloc[1].equals(signed.iloc[3])
    fold = pd.Series(["train", "validation", "test", "test"])
    assert check_duplicates(table(), fold) == ["1 feature vectors both in train or validation and in test"]


def test_encoders_and_predictors_without_sequences_do_not_see_them() -> None:
    made = table()
    assert [column.name for column in feature_columns(SEQUENCE_COLUMNS)] == ["size"]
    predictor = NearestPredictor().fit(
        made.frame[["row", "size", "load"]], made.frame[["score"]], columns=SEQUENCE_COLUMNS
    )
    assert "load" not in {column.name for column in predictor.columns_}
    assert predictor.predict(made.frame[["row", "size"]])["score"].tolist() == [2.0] * 4


def test_quality_counts_missing_numbers() -> None:
    assert column_quality(table())["load"] == {"missing": round(2 / 12, 6), "steps": 3, "unit": "", "group": "cpu"}
