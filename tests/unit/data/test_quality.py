"""Accounting of a standardized dataset: nothing is written unless every row is kept, merged or rejected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.data.standardized import (
    REJECTED_COLUMNS,
    Standardized,
    check_accounting,
    column_quality,
    describe_quality,
    write_standardized,
)
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.schema.table_files import read_table
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", unit="cores", low=1, high=1024),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory", unit="GiB"),
    Column("os", Kind.CATEGORICAL, Role.FEATURE, "system", tags=(Tag.TASK, Tag.ENTITY)),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance"),
    Column("q_far", Kind.NUMERICAL, Role.PROVENANCE, "provenance", tags=(Tag.EXCLUDED,)),
    Column("q_odd", Kind.NUMERICAL, Role.PROVENANCE, "provenance", tags=(Tag.EXCLUDED,)),
)


def standardized(rows: int = 3) -> Standardized:
    """Return a dataset of `rows` kept rows, two merged ones and one rejected one."""
    frame = pd.DataFrame(
        {
            "id": [f"r{number}" for number in range(rows)],
            "cores": [1024.0, 1.0, 64.0][:rows],
            "memory": [np.nan, 512.0, 128.0][:rows],
            "os": ["one", None, "one"][:rows],
            "published": pd.to_datetime(["2021-05-01", "2019-12-01", "2020-01-01"][:rows]),
            "q_far": [1.0, 0.0, 0.0][:rows],
            "q_odd": [1.0, 0.0, 1.0][:rows],
        }
    )
    rejected = pd.DataFrame([["spec", "a.csv", 7, "no_score", "score is 0", "unused"]])
    rejected.columns = [*REJECTED_COLUMNS, "more"]
    return Standardized(
        build_table("demo", frame, COLUMNS), rejected, rows + 3, {"same": 1, "resent": 1}, {"repaired": {"cores": 4}}
    )


def paths(folder: Path) -> tuple[Path, Path, Path]:
    return folder / "demo.parquet", folder / "demo.rejected.csv", folder / "demo.quality.json"


@pytest.mark.parametrize(
    ("rows_in", "cores", "words"),
    [
        *((rows, 1.0, rf"demo: {rows} rows in, but 3 kept \+ 2 merged \+ 1 rejected") for rows in (5, 7)),
        *((6, cores, r"demo: values outside their bounds in \['cores'\]") for cores in (0.99, np.inf)),
    ],
)
def test_rows_that_do_not_add_up_or_are_out_of_bounds_are_never_written(
    tmp_path: Path, rows_in: int, cores: float, words: str
) -> None:
    wrong = replace(standardized(), rows_in=rows_in)
    wrong.table.frame.loc[1, "cores"] = cores
    for call in (check_accounting, lambda result: write_standardized(result, *paths(tmp_path))):
        with pytest.raises(RuntimeError, match=words):
            call(wrong)
    assert list(tmp_path.iterdir()) == []


def test_what_adds_up_is_written(tmp_path: Path) -> None:
    write_standardized(standardized(), *paths(tmp_path))
    table, rejected, quality = paths(tmp_path)
    pd.testing.assert_frame_equal(read_table(table).frame, standardized().table.frame)
    assert rejected.read_text() == "source,file,line,reason,detail\nspec,a.csv,7,no_score,score is 0\n"
    assert quality.is_file()


def test_a_dataset_without_rows_or_without_a_tag_that_every_stage_reads_is_never_written(tmp_path: Path) -> None:
    whole, empty = standardized(), standardized(0)
    reasons = ["unknown_cpu", "no_score", "no_score"]
    many = pd.concat([empty.rejected] * 3, ignore_index=True).assign(reason=reasons)
    nothing = Standardized(empty.table, empty.rejected.head(0), 0)
    untagged = tuple(replace(column, tags=()) if column.name == "os" else column for column in COLUMNS)
    for wrong, words in (
        (replace(empty, rejected=many, rows_in=5), "none of its 5 rows is kept, 2 of them as no_score"),
        (nothing, "'demo' must have usable rows, but none of its 0 rows is kept; ingest"),
        (
            replace(whole, table=build_table("demo", whole.table.frame, untagged)),
            r"'demo' must have exactly one column with Tag\.TASK, but it has none",
        ),
    ):
        with pytest.raises(UserError, match=words):
            write_standardized(wrong, *paths(tmp_path))
    assert list(tmp_path.iterdir()) == []
    check_accounting(nothing)


def test_quality_counts_rows_and_describes_every_column_with_bounds_where_there_are_values() -> None:
    quality = describe_quality(standardized())
    columns = quality.pop("columns")
    assert quality == {
        "dataset": "demo",
        "rows_in": 6,
        "rows_kept": 3,
        "rows_excluded": 2,
        "rejected": {"no_score": 1},
        "merged": {"same": 1, "resent": 1},
        "details": {"repaired": {"cores": 4}},
    }
    assert list(columns) == [column.name for column in COLUMNS]
    assert columns["memory"] == {
        "missing": 0.333333, "unique": 2, "unit": "GiB", "group": "memory", "min": 128.0, "max": 512.0
    }  # fmt: skip
    assert columns["os"] == {"missing": 0.333333, "unique": 1, "unit": "", "group": "system"}
    assert (columns["published"]["min"], columns["published"]["max"]) == ("2019-12-01", "2021-05-01")
    empty = column_quality(standardized(0).table)["cores"]
    assert empty == {"missing": 0.0, "unique": 0, "unit": "cores", "group": "processor"}
    table = standardized().table
    table.frame["memory"] = np.nan
    assert column_quality(table)["memory"] == {"missing": 1.0, "unique": 0, "unit": "GiB", "group": "memory"}
