"""Checks of folds by hand: at the limits of months, shots, loads and generations, and what reading folds refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast import splits
from perfcast.domains.gemm.splits import more_threads
from perfcast.domains.llm.splits import served_models
from perfcast.domains.nas.splits import drawn
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.splits import checks
from perfcast.splits.forward import _last_share
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


@pytest.mark.parametrize(
    ("fold", "loads", "wrong"),
    [
        ([TRAIN, VALID, TEST], [64, 1, 65], 0),
        ([TRAIN, VALID, TEST], [65, 66, 64], 3),
        ([TRAIN, UNUSED, TEST], [1, 99, 63], 1),
    ],
)
def test_larger_loads_are_on_one_side(fold, loads, wrong):
    expected = [f"{wrong} rows on the wrong side of 64 requests"] if wrong else []
    assert served_models._lighter(*table(fold, concurrency=np.array(loads, dtype=float))) == expected


@pytest.mark.parametrize(
    ("fold", "years", "known"),
    [([TRAIN, VALID, TEST, TEST], [2020, 2021, 2022, 2023], 0),
     ([TRAIN, VALID, TEST, TEST], [2020, 2022, 2022, 2023], 1),
     ([TRAIN, UNUSED, TEST, TEST], [2020, 2024, 2019, 2021], 1)],
)  # fmt: skip
def test_newer_generations_are_on_one_side(fold, years, known):
    given = table(fold, generation=[f"n{year}" for year in years], generation_year=np.array(years, dtype=float))
    expected = [f"{known} test rows of a generation as old as one of training"] if known else []
    assert served_models._older(*given) == expected


def test_a_generation_is_as_old_as_its_first_product():
    given, fold = table([TRAIN, TEST, TEST], generation=["a", "b", "b"], generation_year=[2021.0, 2020.0, 2022.0])
    assert served_models._first_years(given.frame).tolist() == [2021, 2020, 2020]
    assert served_models._older(given, fold) == ["2 test rows of a generation as old as one of training"]


@pytest.mark.parametrize(
    ("fold", "known"), [([TRAIN, VALID, TEST], 0), ([TRAIN, TEST, VALID], 1), ([UNUSED, TRAIN, TEST], 0)]
)
def test_more_workers_are_on_one_side(fold, known):
    expected = [f"{known} test rows with as many workers as a training row"] if known else []
    assert more_threads._fewer_in_training(*table(fold, cores=[1.0, 2.0, 4.0])) == expected
    assert more_threads._fewer_in_training(*table([TRAIN, TEST, TEST], cores=[2.0, 2.0, 4.0])) != []


def test_known_entities_are_counted_by_test_task():
    fold = [TRAIN, VALID, TRAIN, TEST, TEST]
    given = table(fold, part=list("abaac"), suite=list("ssttt"))
    assert drawn._entities_unknown(*given) == ["1 entities both in training and in test"]
    assert drawn._few_known(1)(*given) == []
    given = table([TRAIN, VALID, TRAIN, TEST], part=list("abbc"), suite=list("ssss"))
    assert drawn._few_known(2)(*given) == []
    assert drawn._few_known(1)(*given) == ["more than 1 entities known of s"]


def test_the_latest_fifth_begins_with_a_month():
    dates = months(*["2019-01"] * 8, "2019-12", "2020-01")
    assert _last_share(*table([TRAIN] * 7 + [VALID] + [TEST] * 2, published=dates)) != []
    dates = months(*["2019-01"] * 7, "2019-02", "2019-12", "2020-01")
    assert _last_share(*table([TRAIN] * 7 + [VALID] + [TEST] * 2, published=dates)) == []
    assert _last_share(*table([TRAIN] * 6 + [VALID] + [TEST] * 3, published=dates)) != []
    assert _last_share(*table([TRAIN] * 7 + [VALID, VALID, TEST], published=dates)) != []


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
    """Seven groups: one of 4 % and six large ones; from eight on 12 % are drawn."""
    sizes = [4, *[96 // (groups - 1)] * (groups - 1)]
    numbers, test = (
        np.repeat(np.arange(groups + 1), [*sizes, 50]),
        np.repeat(np.arange(groups + 1), [*sizes, 50]) == groups,
    )
    drawn = [served_models._draw_validation(numbers, test, np.random.default_rng(seed)) for seed in range(30)]
    small = any(mask[numbers == 0].any() for mask in drawn)
    assert small == (groups == 8)
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
