"""Checks of folds by hand: at the limits of months, shots, loads and generations, and what reading folds refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast import splits
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.splits import checks
from perfcast.splits.subsets import assigned, draw_validation, without_leaks
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("block", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.BLOCK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("suite", Kind.CATEGORICAL, Role.KEY, "workload", tags=(Tag.TASK,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.PARALLEL,)),
    Column("deployment", Kind.CATEGORICAL, Role.KEY, "layout"),
    Column("generation", Kind.CATEGORICAL, Role.KEY, "gpu"),
    Column("generation_year", Kind.NUMERICAL, Role.PROVENANCE, "gpu"),
    Column("concurrency", Kind.NUMERICAL, Role.PROVENANCE, "load"),
)


def table(fold, **changes):
    """Return a table with a row per subset of the fold, and the fold."""
    rows = range(len(fold))
    frame = pd.DataFrame(
        {
            "id": [f"r{row}" for row in rows],
            "block": [f"b{row}" for row in rows], "part": [f"p{row}" for row in rows],
            "published": pd.Timestamp("2020-01-01"), "suite": "a", "cores": 1.0,
            "deployment": [f"d{row}" for row in rows],
            "generation": "n", "generation_year": 2020.0, "concurrency": 1.0,
        }
    ).assign(**changes)  # fmt: skip
    return build_table("small", frame, COLUMNS), pd.Series(fold, index=frame.index)


def months(*texts):
    return pd.to_datetime(list(texts))


TRAIN, VALID, TEST, UNUSED = "train", "validation", "test", "unused"


@pytest.mark.parametrize(
    ("fold", "problems"),
    [
        ([TRAIN, VALID, TEST, UNUSED], []),
        ([TRAIN, TEST], []),
        ([VALID, TEST], ["no train rows"]),
        ([TRAIN, VALID], ["no test rows"]),
        ([TRAIN, TEST, "b", "a", "a"], ["values other than train, validation, test, unused: a, b"]),
    ],
)
def test_subsets(fold, problems):
    assert checks.check_subsets(*table(fold)) == problems


@pytest.mark.parametrize(
    ("fold", "dates", "problems"),
    [
        ([TRAIN, VALID, TEST], ["2020-01", "2020-02", "2020-03"], []),
        ([TRAIN, TEST, TEST], ["2020-02", "2020-03", "2020-04"], []),
        ([TRAIN, VALID, TEST], ["2020-03", "2020-03", "2020-03"],
         ["2 training rows not known before 2020-03", "validation rows not later than every train row"]),
        ([TRAIN, TEST], [None, "2020-03"], ["1 training rows not known before 2020-03"]),
        ([TRAIN, TEST, TEST], ["2020-01", "2020-05", "2020-02"], ["2 test rows outside 2020-03 .. 2020-05"]),
        ([TRAIN, TEST], ["2020-01", None], ["1 test rows outside 2020-03 .. 2020-05"]),
        ([TRAIN, VALID, TEST], ["2020-01", "2020-01", "2020-03"], ["validation rows not later than every train row"]),
        ([TRAIN, TRAIN, VALID, TEST], ["2020-02", "2019-01", "2020-01", "2020-03"],
         ["validation rows not later than every train row"]),
    ],
)  # fmt: skip
def test_windows_are_from_a_month_to_before_another(fold, dates, problems):
    assert checks.check_window("2020-03", "2020-05")(*table(fold, published=months(*dates))) == problems


@pytest.mark.parametrize(("date", "early"), [("2020-03", 0), ("2020-02", 1), (None, 1)])
def test_training_begins_with_a_month(date, early):
    for name in (TRAIN, VALID):
        given = table([name, TEST, UNUSED], published=months(date, "2019-01", "2019-01"))
        expected = [f"{early} training rows from before 2020-03"] if early else []
        assert checks.check_oldest("2020-03")(*given) == expected


@pytest.mark.parametrize(
    ("fold", "parts", "dates", "problems"),
    [
        ([TRAIN, TRAIN, TRAIN, TEST], "abbb", ["2019-01", "2020-01", "2020-02", "2020-02"], []),
        ([TRAIN, VALID, TRAIN, TRAIN, TEST], "abbbb", ["2019-01", *["2020-01"] * 3, "2020-02"],
         ["1 entities with more than 2 revealed rows"]),
        ([TRAIN, TRAIN, TEST], "aaa", ["2019-12", "2020-01", "2020-02"],
         ["1 entities revealed that were known before 2020-01"]),
        ([TRAIN, TRAIN, TEST, TEST], "abbc", ["2019-12", "2020-02", "2020-01", "2020-01"],
         ["1 test rows older than a revealed row of their entity"]),
        ([TRAIN, VALID, TRAIN, TEST], "abbb", ["2019-12", "2020-01", "2020-03", "2020-02"],
         ["1 test rows older than a revealed row of their entity"]),
        ([TRAIN, TEST, TEST], "abc", ["2019-11", "2019-12", "2020-01"], ["1 test rows before 2020-01"]),
    ],
)  # fmt: skip
def test_revealed_rows_are_the_first_few_of_new_entities(fold, parts, dates, problems):
    given = table(fold, part=list(parts), published=months(*dates))
    assert checks.check_revealed("2020-01", 2)(*given) == problems


def test_blocks_and_entities_count_by_what_crosses():
    fold = [TRAIN, VALID, TEST, TEST, UNUSED, UNUSED]
    given = table(fold, block=list("xyxyxz"), part=list("aabccc"), suite=list("stsuvw"))
    assert checks.check_blocks(*given) == ["2 blocks both in train or validation and in test"]
    assert checks.check_entities(*given) == ["1 entities both in train and in validation"]
    assert checks.check_values("suite")(*given) == ["1 values of suite both in train or validation and in test"]


BY_SPLIT = [
    ("larger_load", [TRAIN, VALID, TEST], {"concurrency": [64.0, 1.0, 65.0]}, ""),
    ("larger_load", [TRAIN, VALID, TEST], {"concurrency": [65.0, 66.0, 64.0]}, "3 rows on the wrong side of 64 requ"),
    ("larger_load", [TRAIN, UNUSED, TEST], {"concurrency": [1.0, 99.0, 63.0]}, "1 rows on the wrong side"),
    ("next_generation", [TRAIN, VALID, TEST, TEST], {"generation_year": [2020.0, 2021.0, 2022.0, 2023.0]}, ""),
    (
        "next_generation",
        [TRAIN, VALID, TEST, TEST],
        {"generation_year": [2020.0, 2022.0, 2022.0, 2023.0]},
        "1 test rows",
    ),
    ("next_generation", [TRAIN, UNUSED, TEST, TEST], {"generation_year": [2020.0, 2024.0, 2019.0, 2021.0]}, "1 test"),
    # a generation is as old as its first product
    (
        *("next_generation", [TRAIN, TEST, TEST]),
        {"generation": ["a", "b", "b"], "generation_year": [2021.0, 2020.0, 2022.0]},
        "2 test rows of a generation as old as one of training",
    ),
    ("more_threads", [TRAIN, VALID, TEST], {"cores": [1.0, 2.0, 4.0]}, ""),
    ("more_threads", [TRAIN, TEST, VALID], {"cores": [1.0, 2.0, 4.0]}, "1 test rows with as many workers"),
    ("more_threads", [UNUSED, TRAIN, TEST], {"cores": [1.0, 2.0, 4.0]}, ""),
    ("more_threads", [TRAIN, TEST, TEST], {"cores": [2.0, 2.0, 4.0]}, "1 test rows with as many workers"),
    # the latest fifth begins with a month
    ("forward_last", [TRAIN] * 7 + [VALID] + [TEST] * 2, {"published": [*"1111111", "2", "3", "4"]}, ""),
    ("forward_last", [TRAIN] * 7 + [VALID] + [TEST] * 2, {"published": [*"11111111", "3", "4"]}, "not later"),
    (
        "forward_last",
        [TRAIN] * 6 + [VALID] + [TEST] * 3,
        {"published": [*"1111111", "2", "3", "4"]},
        "test rows outside",
    ),
    (
        "forward_last",
        [TRAIN] * 7 + [VALID, VALID, TEST],
        {"published": [*"1111111", "2", "3", "4"]},
        "not known before",
    ),
]
"""A split, a fold of it, columns, and what its checks say."""


@pytest.mark.parametrize(("name", "fold", "columns", "problem"), BY_SPLIT)
def test_checks_of_a_split_find_rows_on_the_wrong_side(name, fold, columns, problem):
    if "published" in columns:
        columns = {"published": months(*(f"2019-{month}" for month in columns["published"]))}
    if "generation_year" in columns:
        columns = {"generation": [f"n{year}" for year in columns["generation_year"]], **columns}
    given, subsets = table(fold, **columns)
    problems = splits.leaks(given, subsets.to_frame("fold_0"), name)
    assert any(problem in each for each in problems) if problem else problems == []


def test_subsets_have_an_order():
    test, validation, unused = (np.array(mask, dtype=bool) for mask in ([1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0]))
    assert assigned(test, validation).tolist() == [TEST, TEST, VALID, TRAIN]
    assert assigned(test, validation, unused).tolist() == [UNUSED, TEST, VALID, TRAIN]
    known = without_leaks(np.array([TEST, TRAIN, VALID, TRAIN]), np.array([0, 0, 0, 1]))
    assert known.tolist() == [TEST, UNUSED, UNUSED, TRAIN]


def test_validation_rows_are_an_eighth_by_group_and_none_of_one_group():
    groups, other = np.arange(200) // 2, np.arange(200) < 100
    validation = draw_validation(groups, other, np.random.default_rng(0))
    assert validation.sum() == 12 and not validation[other].any()
    assert set(groups[validation]).isdisjoint(groups[~validation])
    assert not draw_validation(np.zeros(9, dtype=int), np.zeros(9, dtype=bool), np.random.default_rng(0)).any()
    assert draw_validation(np.array([0, 1]), np.zeros(2, dtype=bool), np.random.default_rng(0)).sum() == 1
    assert not draw_validation(np.arange(3), np.ones(3, dtype=bool), np.random.default_rng(0)).any()


@pytest.mark.parametrize("groups", [7, 8])
def test_few_held_out_groups_validate_by_one_that_is_large_enough(groups):
    """Seven deployments: one of 4 % of the rows and six large ones; from eight on 12 % of the rows are drawn."""
    numbers = np.repeat(np.arange(groups + 1), [4, *[96 // (groups - 1)] * (groups - 1), 50])
    test = numbers == groups
    columns = {"deployment": [f"d{number}" for number in numbers], "concurrency": np.where(test, 99.0, 1.0)}
    given, _ = table([TRAIN] * len(numbers), **columns)
    drawn = [(splits.make("larger_load", given, seed) == VALID)["fold_0"].to_numpy() for seed in range(30)]
    assert any(mask[numbers == 0].any() for mask in drawn) == (groups == 8)
    for mask in drawn:
        assert mask.any() and not mask[test].any()
        assert set(numbers[mask]).isdisjoint(numbers[~mask])
        assert groups == 8 or len(set(numbers[mask])) == 1


def test_written_folds_are_read_with_what_was_said_of_them(tmp_path):
    given, fold = table([TRAIN, TEST, UNUSED])
    folds, path = pd.DataFrame({"fold_0": fold, "fold_1": fold[::-1].to_numpy()}), tmp_path / "folds.parquet"
    splits.write_folds(path, folds, given)
    assert splits.read_folds(path, given).attrs == {splits.VERSION: 1}
    splits.write_folds(path, folds, given, "random", 3)
    read = splits.read_folds(path)
    assert read.attrs == {splits.VERSION: 3, splits.BASE: "random"}
    assert list(read) == ["fold_0", "fold_1"]
    assert read["fold_1"].tolist() == [UNUSED, TEST, TRAIN]
    content = pd.read_parquet(path)
    assert content["id"].tolist() == ["r0", "r1", "r2"]
    for frame, fact in (
        (content.iloc[::-1], "has other rows"),
        (content.drop(columns="id"), "has other rows"),
        (content.iloc[1:], "has other rows"),
        (content.assign(fold_1="tests"), "has other values"),
        (content[["id"]], "has no folds"),
    ):
        frame.to_parquet(path, index=False)
        with pytest.raises(UserError, match=fact):
            splits.read_folds(path, given)
