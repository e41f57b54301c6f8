"""The self-describing table."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factory import decode_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.schema.table import Column, Kind, Role, Tag, build_table, infer_columns, out_of_bounds
from perfcast.schema.table_files import content_digest, count_row_groups, read_table, write_table, write_tables
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


def test_equal_tables_give_equal_bytes(tmp_path):
    for name in ("a", "b"):
        write_table(build_table("demo", frame(), COLUMNS), tmp_path / name)
    assert sha256(tmp_path / "a") == sha256(tmp_path / "b")


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
