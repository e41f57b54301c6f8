"""Few-shot splits reveal the first results in time, and their version is new."""

from pathlib import Path

import pandas as pd
import pytest

from perfcast import splits
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("block", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.BLOCK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)
MONTHS = ("2021-01", "2021-06", "2022-11", "2024-03", "2023-02", "2023-09", "2023-09", "2023-09", "2024-08")
"""Two results of a known CPU model, one of another, then six of an unseen one; three of these are of one month."""


def small_table(blocks="abcdefghi"):
    frame = pd.DataFrame(
        {
            "id": [f"r{number}" for number in range(len(MONTHS))],
            "block": list(blocks),
            "part": ["old", "old", "other", *["new"] * 6],
            "published": pd.to_datetime(MONTHS),
            "cores": range(len(MONTHS)),
            "score": 1.0,
        }
    )
    return build_table("small", frame, COLUMNS)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_results_are_revealed(seed):
    assert splits.make("few_shot_1", small_table(), seed)["fold_0"].tolist()[3:] == ["test", "train", *["test"] * 4]


def test_results_of_one_month_are_drawn_and_the_others_stay_in_test():
    revealed = [splits.make("few_shot_3", small_table(), seed)["fold_0"] for seed in range(10)]
    for fold in revealed:
        assert fold[[3, 4, 8]].tolist() == ["test", "train", "test"]
        assert sorted(fold[5:8]) == ["test", "train", "train"]
    assert len({tuple(fold) for fold in revealed}) > 1


def test_other_rows_of_a_revealed_block_are_unused():
    fold = splits.make("few_shot_1", small_table(blocks="abcdeefgh"), 0)["fold_0"]
    assert fold.tolist()[3:] == ["test", "train", "unused", "test", "test", "test"]


def test_folds_of_another_version_are_refused(tmp_path):
    path, table = tmp_path / "folds.parquet", small_table()
    assert splits.split_version("few_shot_3") == 2
    assert splits.split_version("random") == splits.split_version("no such split") == 1
    splits.write_folds(path, splits.make("few_shot_3", table, 0), table, version=2)
    assert splits.read_folds(path, table).attrs[splits.VERSION] == 2
    splits.check_version("few_shot_3", 2, path)
    with pytest.raises(UserError, match=r"'few_shot_3' must be of version 2.*folds.parquet is of version 1"):
        splits.check_version("few_shot_3", 1, Path("folds.parquet"))
