"""Sequence columns: round trips, missing cells, and code that must not see them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.data.standardized import column_quality
from perfcast.features.encoding.columns import feature_columns
from perfcast.predictors.baselines import NearestPredictor
from perfcast.schema.sequences import comparable, from_matrix, is_sequence, to_matrix
from perfcast.schema.table import Column, Kind, Role, Tag, build_table, infer_columns, require_usable_numbers
from perfcast.schema.table_files import content_digest, read_table, write_table
from perfcast.splits.checks import check_duplicates
from perfcast.splits.row_groups import by_features
from perfcast.utils.errors import UserError

COLUMNS = (
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
    return build_table("tiny", frame, COLUMNS)


def test_numbers_survive_selection_and_files(tmp_path: Path) -> None:
    made = table()
    write_table(made, tmp_path / "table.parquet")
    again = read_table(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(again.frame, made.frame)
    assert again.columns == COLUMNS
    assert content_digest(again) == content_digest(made)
    np.testing.assert_array_equal(to_matrix(again.frame["load"].iloc[[3, 1]]), MATRIX[[3, 1]])
    np.testing.assert_array_equal(
        to_matrix(again.frame.loc[np.array([True, False, True, False]), "load"]), MATRIX[[0, 2]]
    )


def test_other_numbers_have_another_digest() -> None:
    assert content_digest(table(MATRIX + 1)) != content_digest(table())


def test_lists_and_missing_cells_become_sequences() -> None:
    frame = pd.DataFrame({"row": ["a", "b"], "size": 1.0, "load": [[1, 2], None], "score": 1.0})
    typed = build_table("tiny", frame, COLUMNS).frame["load"]
    assert is_sequence(typed.dtype)
    np.testing.assert_array_equal(to_matrix(typed), [[1, 2], [np.nan, np.nan]])
    np.testing.assert_array_equal(to_matrix(typed.reindex([1, 0, 7])), [[np.nan] * 2, [1, 2], [np.nan] * 2])
    assert to_matrix(typed.iloc[:0]).shape == (0, 2)


def test_lists_of_two_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length: 1, 2"):
        to_matrix(pd.Series([[1, 2], [3]], name="load"))


def test_an_infinite_number_is_named_with_its_row() -> None:
    broken = MATRIX.copy()
    broken[2, 1] = np.inf
    with pytest.raises(UserError, match="load is inf in row 3"):
        require_usable_numbers(table(broken).frame, COLUMNS, "the table")


def test_rows_are_compared_by_their_sequences() -> None:
    assert by_features(table()).tolist() == [0, 1, 0, 2]
    signed = comparable(table(MATRIX * np.float32(-0.0)).frame, ["load"])  # all zeros or missing
    assert signed.iloc[1].equals(signed.iloc[3])
    fold = pd.Series(["train", "validation", "test", "test"])
    assert check_duplicates(table(), fold) == ["1 feature vectors both in train or validation and in test"]


def test_encoders_and_predictors_without_sequences_do_not_see_them() -> None:
    made = table()
    assert [column.name for column in feature_columns(COLUMNS)] == ["size"]
    predictor = NearestPredictor().fit(made.frame[["row", "size", "load"]], made.frame[["score"]], columns=COLUMNS)
    assert "load" not in {column.name for column in predictor.columns_}
    assert predictor.predict(made.frame[["row", "size"]])["score"].tolist() == [2.0] * 4


def test_quality_counts_missing_numbers() -> None:
    assert column_quality(table())["load"] == {"missing": round(2 / 12, 6), "steps": 3, "unit": "", "group": "cpu"}


def test_a_plain_frame_declares_them() -> None:
    assert infer_columns(table().frame)[2].kind is Kind.SEQUENCE
