"""Groupings, splits, learning-curve splits and their checks on tables small enough to work out by hand."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast import splits
from perfcast.schema.table import Column, Kind, Role, Table, Tag, build_table
from perfcast.splits import checks
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("block", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.BLOCK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("os", Kind.CATEGORICAL, Role.FEATURE, "system"),
    Column("suite", Kind.CATEGORICAL, Role.KEY, "workload", tags=(Tag.TASK,)),
    Column("deployment", Kind.CATEGORICAL, Role.KEY, "layout"),
    Column("generation", Kind.CATEGORICAL, Role.KEY, "gpu"),
    Column("generation_year", Kind.NUMERICAL, Role.PROVENANCE, "gpu"),
    Column("concurrency", Kind.NUMERICAL, Role.PROVENANCE, "load"),
    Column("published_subset", Kind.CATEGORICAL, Role.PROVENANCE, "provenance"),
)
PARALLEL = Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.PARALLEL,))
LETTERS = {"r": "train", "v": "validation", "t": "test", "-": "unused"}


def table(months, *, parallel=False, **changes):
    """Return rows that differ in everything but the named columns; a number of months is that of equal ones."""
    months = ["2020-01"] * months if isinstance(months, int) else list(months)
    names = ("block", "part", "deployment")
    ids = {name: [f"{name[0]}{index:04d}" for index in range(len(months))] for name in ("row", *names)}
    values = {"id": ids.pop("row"), "published": pd.to_datetime(months), "cores": np.arange(len(months), dtype=float)}
    frame = pd.DataFrame({**values, **ids, "os": "linux", "suite": "a", **changes})
    columns = [PARALLEL if parallel and each.name == "cores" else each for each in COLUMNS]
    return build_table("small", frame, [each for each in columns if each.name in frame])


def letters(fold):
    return "".join(next(letter for letter, subset in LETTERS.items() if subset == value) for value in fold)


YEARS = ("2020-06", "2021-12", "2022-01", "2022-12", "2023-01", "2023-12", "2024-12", "2025-01", None)
LAST = ("2018-01", "2018-06", "2019-01", "2019-04", "2019-06", "2019-12", "2020-04", *["2020-05"] * 3, None)
SHOTS = ("2021-01", "2021-06", "2022-11", "2024-03", "2023-02", "2023-09", "2023-09", "2023-09", "2024-08")
"""Two results of a known CPU model, one of another, then six of an unseen one; three of these are of one month."""
NEW = {"part": ["old", "old", "other", *["new"] * 6]}


@pytest.mark.parametrize(
    ("name", "months", "columns", "expected"),
    [
        ("forward_2023", YEARS, {}, "rrvvttt--"),
        ("forward_2024", YEARS, {}, "rrrrvvt--"),
        ("forward_2023", ("2020-01", "2022-11", "2022-12", "2023-01"), {"block": list("abcc")}, "rv-t"),
        ("forward_2023", ("2020-01", "2022-11", "2023-05"), {"cores": 8.0}, "rvt"),
        # ten dated rows: the last two by date are of 2020-05, and so is a third one
        ("forward_last", LAST, {}, "rrrrvvvttt-"),
        ("few_shot_1", SHOTS, NEW, "rrvtrtttt"),
        ("few_shot_1", SHOTS, {**NEW, "block": list("abcdeefgh")}, "rrvtr-ttt"),
        ("published", 3, {"block": list("aab"), "published_subset": ["train", "train", "test"]}, "rrt"),
    ],
)
def test_rows_of_a_split_are_those_worked_out_by_hand(name, months, columns, expected):
    for seed in range(3):
        assert letters(splits.make(name, table(months, **columns), seed)["fold_0"]) == expected


def test_later_results_change_no_earlier_split():
    early = table(["2023-01"] * 20 + ["2024-12"] * 20)
    later = table(["2023-01"] * 20 + ["2024-12"] * 20 + ["2025-01", "2025-12"])
    for name in ("random", "unseen_cpu", "forward_2024"):
        folds, expected = splits.make(name, later, 0, "2024-12"), splits.make(name, early, 0)
        pd.testing.assert_frame_equal(folds.iloc[:40], expected)
        assert (folds.iloc[40:] == "unused").all(axis=None)
    assert letters(splits.make("forward_2025", later, 0, "2024-12")["fold_0"])[40:] == "tt"


def test_results_of_one_month_are_drawn_and_the_others_stay_in_test():
    revealed = [letters(splits.make("few_shot_3", table(SHOTS, **NEW), seed)["fold_0"][3:]) for seed in range(10)]
    assert set(revealed) <= {"trrrtt", "trrtrt", "trtrrt"} and len(set(revealed)) > 1


def test_random_keeps_chains_of_equal_rows_together():
    # a-b share a block, b-c every feature, c-d a block: one group of four beside single rows.
    small = table(12, block=list("xxyyefghijkl"), cores=[1.0, 2.0, 2.0, *range(4, 13)])
    for seed in range(20):
        fold = splits.make("random", small, seed)["fold_0"]
        assert fold[:4].nunique() == 1
        assert (fold == "test").sum() == 2


def test_unseen_asks_about_every_row_once_and_sets_straddling_blocks_aside():
    small = table(60, part=[f"p{index % 13}" for index in range(60)])
    folds = splits.make("unseen_cpu", small, 3)
    assert list(folds) == [f"fold_{number}" for number in range(5)]
    assert (folds == "test").sum(axis=1).eq(1).all()
    assert (folds == "validation").any().all()
    pd.testing.assert_frame_equal(folds, splits.make("unseen_shape", small, 3))
    first, second = splits.make("unseen_cpu", table(10, block=["same", "same", *"cdefghij"]), 0).iloc[:2].to_numpy()
    assert (second[first == "test"] == "unused").all() and (first[second == "test"] == "unused").all()


@pytest.mark.parametrize(
    ("name", "small", "words"),
    [
        ("forward_2023", table(["2023-01"] * 4), None),
        ("forward_2024", table([]), None),
        ("forward_last", table([None, None]), "needs dates"),
        ("random", table(4, block="a"), None),
        ("unseen_cpu", table(4), None),
        ("published", table(4, published_subset="train"), None),
        ("published", table(3), "published_subset"),
        ("randm", table(4), r"random.*found 'randm'.*did you mean 'random'"),
    ],
)
def test_an_empty_part_or_an_unknown_name_is_refused_in_one_line(name, small, words):
    with pytest.raises(UserError, match=words) as caught:
        splits.make(name, small, 0)
    assert "\n" not in str(caught.value)


def test_rows_that_only_share_a_fingerprint_are_no_leak(monkeypatch):
    monkeypatch.setattr("perfcast.splits.checks._fingerprints", lambda keys: np.zeros(len(keys), dtype=np.uint64))
    folds = pd.DataFrame({"fold_0": ["train", "train", "test", "test"]})
    assert splits.leaks(table(4), folds, "unseen_cpu") == []
    known = ["fold_0: 1 entities both in train or validation and in test"]
    assert splits.leaks(table(4, part=list("abbd")), folds, "unseen_cpu") == known


def test_equal_features_are_a_leak_however_zero_and_missing_are_written():
    folds = pd.DataFrame({"fold_0": ["train", "test", "train", "test"]})
    other = float(np.frombuffer(np.uint64(0x7FF8_0000_0000_0001).tobytes())[0])
    leaks = splits.leaks(table(4, cores=[0.0, -0.0, np.nan, other]), folds, "random")
    assert leaks == ["fold_0: 2 feature vectors both in train or validation and in test"]


def test_a_split_of_coded_texts_is_that_of_plain_ones():
    months = [f"20{year}-{month:02d}-01" for year in range(18, 25) for month in range(1, 13)]
    plain = table(months, part=[f"p{index % 9}" for index in range(84)], cores=np.arange(84) % 5)
    texts = {name: plain.frame[name].astype("category") for name in ("block", "part", "os")}
    coded = Table(plain.dataset, plain.frame.assign(**texts), plain.columns)
    for name in ("random", "unseen_cpu", "forward_2023", "few_shot_1", "random_20_percent"):
        pd.testing.assert_frame_equal(splits.make(name, coded, 0), splits.make(name, plain, 0))


def test_folds_of_another_version_are_refused():
    assert splits.split_version("few_shot_3") == 2
    assert splits.split_version("random") == splits.split_version("no such split") == 1
    splits.check_version("few_shot_3", 2, Path("folds.parquet"))
    with pytest.raises(UserError, match=r"'few_shot_3' must be of version 2.*folds.parquet is of version 1"):
        splits.check_version("few_shot_3", 1, Path("folds.parquet"))


@pytest.fixture(scope="module")
def weekly():
    """Four thousand results in blocks of two, of two hundred parts, over ten years from 2015 on."""
    number = np.arange(4000)
    days = pd.Series(pd.Timestamp("2015-01-01") + pd.to_timedelta(number * 3650 / 4000, unit="D"))
    blocks, parts = ([f"{index}" for index in ids] for ids in (number // 2, number // 2 % 200))
    return table(days.dt.to_period("M").dt.to_timestamp(), block=blocks, part=parts)


@pytest.mark.parametrize(("base", "group"), [("random", "block"), ("unseen_cpu", "part")])
def test_shares_are_nested_whole_groups_and_as_large_as_they_say(weekly, base, group):
    shares = (5, 10, 20, 40)
    folds = [splits.make(f"{base}_{share:02d}_percent", weekly, 0) for share in shares]
    folds.append(splits.make(base, weekly, 0))
    groups = weekly.frame[group]
    for fold in folds[-1]:
        for part in ("train", "validation"):
            held = [set(weekly.frame.index[fold_part[fold] == part]) for fold_part in folds]
            assert all(smaller < larger for smaller, larger in pairwise(held))
            largest = groups[list(held[-1])].value_counts().max()
            for share, rows in zip(shares, held, strict=False):
                assert abs(len(rows) - share / 100 * len(held[-1])) <= largest / 2
                assert not set(groups[list(rows)]) & set(groups[list(held[-1] - rows)])


@pytest.mark.parametrize("base", ["forward_2023", "forward_2024"])
def test_years_are_the_last_ones_before_the_cut_and_a_quarter_of_them_is_validation(weekly, base):
    whole, time = splits.make(base, weekly, 0)["fold_0"], weekly.frame["published"]
    cut = pd.Timestamp(f"{base[-4:]}-01-01")
    for years, name in enumerate(("1_year", "2_years", "3_years", "4_years"), start=1):
        fold = splits.make(f"{base}_last_{name}", weekly, 0)["fold_0"]
        learned, validation = fold.isin(["train", "validation"]), fold == "validation"
        assert (learned == (whole.isin(["train", "validation"]) & (time >= cut - pd.DateOffset(years=years)))).all()
        assert time[validation].min() == cut - pd.DateOffset(months=3 * years)
        assert (learned & (time >= time[validation].min()) == validation).all()


def test_a_split_of_a_new_module_needs_no_other_edit(monkeypatch, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from perfcast.splits.declaration import declare_split\n"
        "@declare_split('my rows', 'rows of mine')\n"
        "def my_split(table, seed):\n"
        "    raise NotImplementedError\n"
    )
    monkeypatch.setattr(splits, "__path__", [*splits.__path__, str(tmp_path)])
    splits._functions.cache_clear()
    try:
        assert "my_split" in splits.names() and splits.is_compared("my_split")
    finally:
        monkeypatch.undo()
        splits._functions.cache_clear()


TRAIN, VALID, TEST, UNUSED = LETTERS.values()


def folded(fold, **changes):
    """Return a table with a row per subset of the fold, and the fold."""
    alike = {"cores": 1.0, "generation": "n", "generation_year": 2020.0, "concurrency": 1.0}
    return table(len(fold), parallel=True, **alike | changes), pd.Series(fold)


def months(*texts):
    return pd.to_datetime(list(texts))


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
    assert checks.check_window("2020-03", "2020-05")(*folded(fold, published=months(*dates))) == problems


@pytest.mark.parametrize(("date", "early"), [("2020-03", 0), ("2020-02", 1), (None, 1)])
def test_training_begins_with_a_month(date, early):
    for name in (TRAIN, VALID):
        given = folded([name, TEST, UNUSED], published=months(date, "2019-01", "2019-01"))
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
    given = folded(fold, part=list(parts), published=months(*dates))
    assert checks.check_revealed("2020-01", 2)(*given) == problems


def test_blocks_and_entities_count_by_what_crosses():
    fold = [TRAIN, VALID, TEST, TEST, UNUSED, UNUSED]
    given = folded(fold, block=list("xyxyxz"), part=list("aabccc"), suite=list("stsuvw"))
    assert checks.check_blocks(*given) == ["2 blocks both in train or validation and in test"]
    assert checks.check_entities(*given) == ["1 entities both in train and in validation"]
    assert checks.check_values("suite")(*given) == ["1 values of suite both in train or validation and in test"]


BY_SPLIT = [
    ("larger_load", [TRAIN, VALID, TEST], {"concurrency": [64.0, 1.0, 65.0]}, ""),
    ("larger_load", [TRAIN, VALID, TEST], {"concurrency": [65.0, 66.0, 64.0]}, "3 rows on the wrong side of 64 requ"),
    ("next_generation", [TRAIN, VALID, TEST, TEST], {"generation_year": [2020.0, 2021.0, 2022.0, 2023.0]}, ""),
    ("next_generation", [TRAIN, UNUSED, TEST, TEST], {"generation_year": [2020.0, 2024.0, 2019.0, 2021.0]}, "1 test"),
    # a generation is as old as its first product
    (
        "next_generation",
        [TRAIN, TEST, TEST],
        {"generation": ["a", "b", "b"], "generation_year": [2021.0, 2020.0, 2022.0]},
        "2 test rows of a generation as old as one of training",
    ),
    ("more_threads", [TRAIN, VALID, TEST], {"cores": [1.0, 2.0, 4.0]}, ""),
    ("more_threads", [TRAIN, TEST, TEST], {"cores": [2.0, 2.0, 4.0]}, "1 test rows with as many workers"),
    # the latest fifth begins with a month
    ("forward_last", [TRAIN] * 7 + [VALID] + [TEST] * 2, {"published": [*"1111111", "2", "3", "4"]}, ""),
    ("forward_last", [TRAIN] * 7 + [VALID] + [TEST] * 2, {"published": [*"11111111", "3", "4"]}, "not later"),
    ("forward_last", [TRAIN] * 6 + [VALID] + [TEST] * 3, {"published": [*"1111111234"]}, "test rows outside"),
    ("forward_last", [TRAIN] * 7 + [VALID, VALID, TEST], {"published": [*"1111111234"]}, "not known before"),
]
"""A split, a fold of it, columns, and what its checks say."""


@pytest.mark.parametrize(("name", "fold", "columns", "problem"), BY_SPLIT)
def test_checks_of_a_split_find_rows_on_the_wrong_side(name, fold, columns, problem):
    if "published" in columns:
        columns = {"published": months(*(f"2019-{month}" for month in columns["published"]))}
    if "generation_year" in columns:
        columns = {"generation": [f"n{year}" for year in columns["generation_year"]], **columns}
    given, subsets = folded(fold, **columns)
    problems = splits.leaks(given, subsets.to_frame("fold_0"), name)
    assert any(problem in each for each in problems) if problem else problems == []


@pytest.mark.parametrize("groups", [7, 8])
def test_few_held_out_groups_validate_by_one_that_is_large_enough(groups):
    """Seven deployments: one of 4 % of the rows and six large ones; from eight on 12 % of the rows are drawn."""
    numbers = np.repeat(np.arange(groups + 1), [4, *[96 // (groups - 1)] * (groups - 1), 50])
    test = numbers == groups
    columns = {"deployment": [f"d{number}" for number in numbers], "concurrency": np.where(test, 99.0, 1.0)}
    given, _ = folded([TRAIN] * len(numbers), **columns)
    drawn = [(splits.make("larger_load", given, seed) == VALID)["fold_0"].to_numpy() for seed in range(30)]
    assert any(mask[numbers == 0].any() for mask in drawn) == (groups == 8)
    for mask in drawn:
        assert mask.any() and not mask[test].any()
        assert set(numbers[mask]).isdisjoint(numbers[~mask])
        assert groups == 8 or len(set(numbers[mask])) == 1


def test_written_folds_are_read_with_what_was_said_of_them(tmp_path):
    given, fold = folded([TRAIN, TEST, UNUSED])
    folds, path = pd.DataFrame({"fold_0": fold, "fold_1": fold[::-1].to_numpy()}), tmp_path / "folds.parquet"
    splits.write_folds(path, folds, given)
    assert splits.read_folds(path, given).attrs == {splits.VERSION: 1}
    splits.write_folds(path, folds, given, "random", 3)
    read = splits.read_folds(path)
    assert read.attrs == {splits.VERSION: 3, splits.BASE: "random"}
    assert list(read) == ["fold_0", "fold_1"]
    assert read["fold_1"].tolist() == [UNUSED, TEST, TRAIN]
    content = pd.read_parquet(path)
    assert content["id"].tolist() == ["r0000", "r0001", "r0002"]
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
