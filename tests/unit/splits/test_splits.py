"""Groupings and splits on tables small enough to work out by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast import splits
from perfcast.schema.table import Column, Kind, Role, Table, Tag, build_table
from perfcast.splits.row_groups import balanced_folds, by_values, connected, draw
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("block", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.BLOCK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("os", Kind.CATEGORICAL, Role.FEATURE, "system"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


def table(months, blocks=None, parts=None, cores=None, extra=()):
    rows = len(months)
    number = range(rows)
    frame = pd.DataFrame(
        {
            "id": [f"r{index:03d}" for index in number],
            "block": blocks or [f"b{index}" for index in number],
            "part": parts or [f"p{index}" for index in number],
            "published": pd.to_datetime(list(months)),
            "cores": cores or [float(index) for index in number],
            "os": ["linux"] * rows,
            "score": [1.0] * rows,
            **dict(extra),
        }
    )
    added = tuple(Column(name, Kind.CATEGORICAL, Role.PROVENANCE, "provenance") for name, _ in extra)
    return build_table("small", frame, COLUMNS + added)


def test_by_values_counts_missing_as_equal():
    frame = pd.DataFrame({"a": [1.0, 1.0, np.nan, np.nan, 2.0], "b": ["x", "x", "y", "y", "x"]})
    assert by_values(frame, ["a", "b"]).tolist() == [0, 0, 1, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.booleans()), min_size=1, max_size=30))
@settings(deadline=None, max_examples=100)
def test_by_values_groups_equal_rows_and_no_others(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    groups = by_values(frame, ["a", "b", "c"])
    pairs = [(groups[i] == groups[j], rows[i] == rows[j]) for i in range(len(rows)) for j in range(i)]
    assert all(together == equal for together, equal in pairs)


def test_connected_follows_chains():
    first, second = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3])
    assert connected(first, second).tolist() == [0, 0, 0, 1, 2]
    assert connected(np.array([], dtype=int), np.array([], dtype=int)).tolist() == []


@given(st.lists(st.integers(0, 8), min_size=2, max_size=60), st.integers(0, 5))
@settings(deadline=None, max_examples=100)
def test_draw_takes_whole_groups_and_leaves_some(keys, seed):
    groups = pd.factorize(np.array(keys))[0]
    if groups.max() == 0:
        return
    drawn = draw(groups, 0.2, np.random.default_rng(seed))
    assert 0 < drawn.sum() < len(groups)
    assert not set(groups[drawn]) & set(groups[~drawn])
    assert drawn.sum() <= max(0.2 * len(groups), np.bincount(groups).min())


def test_balanced_folds_are_even():
    groups = np.repeat(np.arange(40), np.arange(1, 41))
    sizes = np.bincount(balanced_folds(groups, 5, np.random.default_rng(0)))
    assert len(sizes) == 5
    assert sizes.max() - sizes.min() <= 2


def test_forward_cuts_by_month():
    months = ["2020-06", "2021-12", "2022-01", "2022-12", "2023-01", "2023-12", "2024-12", "2025-01", None]
    expected = ["train", "train", "validation", "validation", "test", "test", "test", "unused", "unused"]
    assert splits.function("forward_2023")(table(months), 0)["fold_0"].tolist() == expected
    expected = ["train", "train", "train", "train", "validation", "validation", "test", "unused", "unused"]
    assert splits.function("forward_2024")(table(months), 0)["fold_0"].tolist() == expected


def test_forward_sets_straddling_blocks_aside():
    small = table(["2020-01", "2022-11", "2022-12", "2023-01"], blocks=["a", "b", "c", "c"])
    assert splits.function("forward_2023")(small, 0)["fold_0"].tolist() == ["train", "validation", "unused", "test"]


def test_forward_keeps_known_configurations_in_test():
    small = table(["2020-01", "2022-11", "2023-05"], cores=[8.0, 8.0, 8.0])
    assert splits.make("forward_2023", small, 0)["fold_0"].tolist() == ["train", "validation", "test"]


def test_forward_last_tests_on_the_last_fifth_by_whole_months():
    # Ten dated rows: the last two by date are of 2020-05, and so is a third one.
    months = ["2018-01", "2018-06", "2019-01", "2019-04", "2019-06", "2019-12", "2020-04", *["2020-05"] * 3, None]
    expected = ["train", "train", "train", "train", "validation", "validation", "validation", *["test"] * 3, "unused"]
    assert splits.make("forward_last", table(months), 0)["fold_0"].tolist() == expected


def test_forward_last_needs_dates():
    with pytest.raises(UserError, match="needs dates"):
        splits.function("forward_last")(table([None, None]), 0)


def test_shuffled_draws_rows_one_by_one():
    # One block and one set of features: every other split would have to keep these rows together.
    small = table(["2020-01"] * 50, blocks=["same"] * 50, cores=[8.0] * 50)
    folds = [splits.make("shuffled", small, seed)["fold_0"] for seed in range(3)]
    assert [(fold == "test").sum() for fold in folds] == [10, 10, 10]
    assert [(fold == "validation").sum() for fold in folds] == [4, 4, 4]
    assert not folds[0].equals(folds[1])


def test_random_keeps_chains_of_equal_rows_together():
    # a-b share a block, b-c every feature, c-d a block: one group of four beside single rows.
    small = table(["2020-01"] * 12, blocks=["x", "x", "y", "y", *"efghijkl"], cores=[1.0, 2.0, 2.0, *range(4, 13)])
    for seed in range(20):
        fold = splits.make("random", small, seed)["fold_0"]
        assert fold[:4].nunique() == 1
        assert (fold == "test").sum() == 2


def test_unseen_asks_about_every_row_once():
    small = table(["2020-01"] * 60, parts=[f"p{index % 13}" for index in range(60)])
    folds = splits.make("unseen_cpu", small, 3)
    assert list(folds) == [f"fold_{number}" for number in range(5)]
    assert (folds == "test").sum(axis=1).eq(1).all()
    assert (folds == "validation").any().all()
    pd.testing.assert_frame_equal(folds, splits.make("unseen_shape", small, 3))


def test_unseen_sets_straddling_blocks_aside():
    small = table(["2020-01"] * 10, blocks=["same", "same", *"cdefghij"])
    folds = splits.make("unseen_cpu", small, 0)
    first, second = folds.iloc[0], folds.iloc[1]
    assert (second[first == "test"] == "unused").all()
    assert (first[second == "test"] == "unused").all()


def test_published_follows_the_authors():
    part = ["train"] * 8 + ["test", "test", None]
    small = table(["2020-01"] * 11, extra=[("published_subset", part)])
    fold = splits.make("published", small, 0)["fold_0"]
    assert fold[8:].tolist() == ["test", "test", "unused"]
    assert sorted(fold[:8].unique()) == ["train", "validation"]


def test_published_with_one_training_block_has_no_validation_rows():
    small = table(["2020-01"] * 3, blocks=["a", "a", "b"], extra=[("published_subset", ["train", "train", "test"])])
    assert splits.make("published", small, 0)["fold_0"].tolist() == ["train", "train", "test"]


def test_published_needs_a_split_of_the_authors():
    with pytest.raises(UserError, match="published_subset"):
        splits.make("published", table(["2020-01"] * 3), 0)


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("forward_2023", table(["2023-01"] * 4)),
        ("forward_2023", table(["2020-01"] * 4)),
        ("forward_2024", table([])),
        ("random", table(["2020-01"] * 4, blocks=["a"] * 4)),
        ("random", table([])),
        ("unseen_cpu", table(["2020-01"] * 4)),
        ("unseen_cpu", table([])),
        ("published", table(["2020-01"] * 4, extra=[("published_subset", ["train"] * 4)])),
    ],
)
def test_an_empty_part_is_refused_in_one_line(name, small):
    with pytest.raises(UserError) as caught:
        splits.make(name, small, 0)
    assert "\n" not in str(caught.value)


def test_unknown_name_lists_the_known():
    with pytest.raises(UserError, match=r"random.*found 'randm'.*did you mean 'random'"):
        splits.make("randm", table(["2020-01"] * 4), 0)


def test_names():
    assert {"random", "unseen_cpu", "unseen_shape", "forward_2023", "forward_2024", "published"} <= set(splits.names())


def with_workers(workers):
    columns = tuple(
        Column(column.name, column.kind, column.role, column.group, tags=(Tag.PARALLEL,))
        if column.name == "cores"
        else column
        for column in COLUMNS
    )
    made = table(["2020-01"] * len(workers), cores=[float(number) for number in workers])
    return build_table("small", made.frame, columns)


def test_more_threads_asks_about_the_largest_number_of_workers():
    worker_table = with_workers([1, 2, 4, 4, 1, 2, 1, 1, 2, 2, 1, 1])
    fold = splits.make("more_threads", worker_table, 0)["fold_0"]
    assert (fold == "test").tolist() == (worker_table.frame["cores"] == 4).tolist()
    assert (fold == "validation").any()
    both = fold.mask(worker_table.frame["cores"] == 2, "test").to_frame()
    assert splits.leaks(worker_table, both, "more_threads") == []
    one_too_few = fold.mask(worker_table.frame.index == 0, "test").to_frame()
    assert any("as many workers" in problem for problem in splits.leaks(worker_table, one_too_few, "more_threads"))


def test_a_block_with_more_threads_is_not_learned_from():
    worker_table = with_workers([1, 2, 4, 1, 2, 1])
    worker_table.frame.loc[[0, 2], "block"] = "both"
    fold = splits.make("more_threads", worker_table, 0)["fold_0"]
    assert (fold[0], fold[2]) == ("unused", "test")


@pytest.mark.parametrize("made", [table(["2020-01"] * 4), with_workers([2, 2, 2])])
def test_more_threads_needs_several_numbers_of_workers(made):
    with pytest.raises(UserError, match="several numbers of workers"):
        splits.make("more_threads", made, 0)


def test_rows_that_only_share_a_fingerprint_are_no_leak(monkeypatch):
    monkeypatch.setattr("perfcast.splits.checks._fingerprints", lambda keys: np.zeros(len(keys), dtype=np.uint64))
    given_ = table(["2020-01-01"] * 4, parts=["a", "b", "c", "d"])
    folds = pd.DataFrame({"fold_0": ["train", "train", "test", "test"]})
    assert splits.leaks(given_, folds, "unseen_cpu") == []
    given_ = table(["2020-01-01"] * 4, parts=["a", "b", "b", "d"])
    assert splits.leaks(given_, folds, "unseen_cpu") == ["fold_0: 1 entities both in train or validation and in test"]


def test_equal_features_are_a_leak_however_zero_and_missing_are_written():
    folds = pd.DataFrame({"fold_0": ["train", "test", "train", "test"]})
    other = float(np.frombuffer(np.uint64(0x7FF8_0000_0000_0001).tobytes())[0])
    given_ = table(["2020-01-01"] * 4, cores=[0.0, -0.0, np.nan, other])
    assert splits.leaks(given_, folds, "random") == [
        "fold_0: 2 feature vectors both in train or validation and in test"
    ]


def test_a_split_of_coded_texts_is_that_of_plain_ones():
    months = [f"20{year}-{month:02d}-01" for year in range(18, 25) for month in range(1, 13)]
    given_ = table(months, parts=[f"p{index % 9}" for index in range(84)], cores=[index % 5 for index in range(84)])
    texts = {name: given_.frame[name].astype("category") for name in ("block", "part", "os")}
    coded = Table(given_.dataset, given_.frame.assign(**texts), given_.columns)
    for name in ("random", "unseen_cpu", "forward_2023", "few_shot_1", "random_20_percent"):
        pd.testing.assert_frame_equal(splits.make(name, coded, 0), splits.make(name, given_, 0))
