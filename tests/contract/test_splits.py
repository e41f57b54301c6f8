"""Every split, on generated tables: no test row is known from training, and the checks find one that is."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perfcast import splits
from perfcast.schema.table import LEAVE_ONE_OUT, Column, Kind, Role, Tag, build_table
from perfcast.splits.subsets import PUBLISHED_SUBSET
from perfcast.utils.errors import UserError

NAMES = splits.names()
LEAKING = ["shuffled"]
"""Splits that leak on purpose, to reproduce errors that others published on shuffled rows."""


LEARNING_CURVE = [name for name in NAMES if splits.learning_curve_point(name)]
"""Splits that train on less."""


def test_only_splits_that_leak_on_purpose_or_train_on_less_are_not_compared():
    assert [name for name in NAMES if not splits.is_compared(name)] == sorted([*LEAKING, *LEARNING_CURVE])
    assert splits.is_compared("of an older version")
    assert splits.learning_curve_point("of an older version") is None
    assert splits.split_label("of an older version") == "of an older version"
    assert splits.describe_split("of an older version") == ""


@pytest.mark.parametrize("name", NAMES)
def test_has_a_label_and_a_description_of_its_own(name):
    assert splits.split_label(name) not in {"", name, *(splits.split_label(other) for other in NAMES if other != name)}
    assert splits.describe_split(name)
    assert not splits.describe_split(name).endswith(".")


SOUND = [name for name in NAMES if name not in {*LEAKING, "model_on_one"} and not name.startswith("known_")]
BY_TEST_MONTH = "forward_2026_05"
"""Its validation rows are drawn, and its dates those of the tests."""
FORWARD = [name for name in NAMES if name.startswith(("forward", "rolling")) and name != BY_TEST_MONTH]
FEW_SHOT = [name for name in NAMES if name.startswith("few_shot")]
KNOW_SOME = {"known_1_of_new": 1, "known_3_of_new": 3, "known_10_of_new": 10}
"""Splits that know so many results of each new entity, which may be of the same block."""
KNOW_ONE = [name for name in NAMES if name.startswith("known_") and name not in KNOW_SOME]
"""Splits that know a result of the tested entity, which may be of the same block."""
UNSEEN = [name for name in NAMES if name.startswith("unseen")]
HELD_OUT = {
    "unseen_deployment": "deployment",
    "unseen_model": "model_family",
    "unseen_gpu": "gpu",
    "unseen_training_set": "training_set",
    "unseen_microarchitecture": "generation",
    "unseen_core_family": "core_family",
    "unseen_family": "family",
    "unseen_system_vendor": "hw_vendor",
    "unseen_silicon": "silicon",
    "unseen_system": "system",
    "unseen_submitter": "submitter",
    "unseen_organization": "organization",
    "unseen_victim": "victim",
    "unseen_aggressor": "aggressors",
    "unseen_pair": "tenants",
}
"""Columns of the unseen splits that do not hold out the entity."""
COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("block", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.BLOCK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("suite", Kind.CATEGORICAL, Role.KEY, "workload", tags=(Tag.TASK,)),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column(PUBLISHED_SUBSET, Kind.CATEGORICAL, Role.PROVENANCE, "provenance"),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.PARALLEL,)),
    Column("cores_enabled_total", Kind.NUMERICAL, Role.PROVENANCE, "system"),
    Column("memory_gb", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("os", Kind.CATEGORICAL, Role.FEATURE, "system"),
    Column("deployment", Kind.CATEGORICAL, Role.KEY, "layout"),
    Column("model_family", Kind.CATEGORICAL, Role.KEY, "model"),
    Column("gpu", Kind.CATEGORICAL, Role.KEY, "gpu"),
    Column("generation", Kind.CATEGORICAL, Role.KEY, "gpu"),
    *(
        Column(name, Kind.CATEGORICAL, Role.KEY, "server")
        for name in ("core_family", "family", "hw_vendor", "system_stem")
    ),
    *(Column(name, Kind.CATEGORICAL, Role.KEY, "server") for name in ("compiler_vendor", "compiler_major_minor")),
    *(Column(name, Kind.NUMERICAL, Role.KEY, "server") for name in ("chips", "threads_per_core", "dimm_count")),
    *(Column(name, Kind.NUMERICAL, Role.KEY, "server") for name in ("dimm_gb", "mem_eff_mts")),
    Column("test_month", Kind.DATE, Role.PROVENANCE, "provenance"),
    Column("generation_year", Kind.NUMERICAL, Role.PROVENANCE, "gpu"),
    Column("concurrency", Kind.NUMERICAL, Role.PROVENANCE, "load"),
    Column("params", Kind.NUMERICAL, Role.PROVENANCE, "model"),
    Column("tokens", Kind.NUMERICAL, Role.PROVENANCE, "training"),
    Column("compute", Kind.NUMERICAL, Role.PROVENANCE, "training"),
    Column("training_set", Kind.CATEGORICAL, Role.KEY, "training"),
    *(Column(name, Kind.CATEGORICAL, Role.KEY, "run") for name in ("victim", "tenants", "aggressors", "scenario")),
    *(Column(name, Kind.NUMERICAL, Role.KEY, "run") for name in ("intensity", "aggressor_intensity")),
    *(Column(name, Kind.CATEGORICAL, Role.KEY, "result") for name in ("round", "model", "silicon", "system")),
    *(Column(name, Kind.CATEGORICAL, Role.KEY, "result") for name in ("submitter", "organization")),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)
ROUNDS = ["v2.0", "v2.1", "v3.0", "v3.1", "v4.0", "v4.1", "v5.0", "v5.1"]
ROUND_STARTS = pd.to_datetime(["2022-09", "2023-04", "2023-09", "2024-03", "2024-08", "2025-04", "2025-09"])
WORKLOADS = ("chase", "fft", "http", "json", "matrix", "sort", "text", "triad")


def draw_tenants(rng, block):
    """Return victim, tenants and aggressors of every row: two or three workloads per block, some rows alone."""
    by_block = {number: sorted(rng.choice(WORKLOADS, 2 + number % 2, replace=False)) for number in np.unique(block)}
    tenants = [by_block[number] for number in block]
    places = rng.integers(0, 2, len(block))
    aggressors = [
        [name for name in names if name != names[place]] for names, place in zip(tenants, places, strict=True)
    ]
    return {
        "victim": [names[place] for names, place in zip(tenants, places, strict=True)],
        "tenants": ["+".join(names) for names in tenants],
        "aggressors": ["" if rng.random() < 0.1 else "+".join(names) for names in aggressors],
    }


@cache
def generate(seed, rows=300):
    """Parts with several submissions of one to four rows; some straddle months, some rows repeat another's features.

    Rows are of 2006 to 2025, so that every split by date has some on both sides; a quarter of the parts is new
    in 2023, and one of many rows in the last months.
    """
    rng = np.random.default_rng(seed)
    block = np.sort(rng.integers(0, rows // 2, rows))
    part = rng.integers(0, 40, rows)[block]
    month = rng.integers(0, 240, rows)[block] + (rng.random(rows) < 0.05)
    month = np.where(part >= 30, 204 + month % 24, month)
    last = rows // 2 - block  # of the last blocks, 16 are of one part in 2025-09 to 11, and some of 2025-05 to 07
    part = np.where(last <= 16, 29, part)
    month = np.where(part == 29, 237 + month % 3, np.where(last <= 24, 233 + month % 3, month))
    params = 1e7 * 3.0 ** (block % 7)
    tokens = 20 * params * 2.0 ** (block // 7 % 5)
    published = pd.Series(pd.to_datetime("2006-01-01") + pd.to_timedelta(month * 30.4, unit="D"))
    published = published.dt.to_period("M").dt.to_timestamp()
    frame = pd.DataFrame(
        {
            "id": rng.permutation([f"r{index:04d}" for index in range(rows)]),
            "block": [f"b{number}" for number in block],
            "part": [f"p{number}" for number in part],
            "suite": [f"s{number}" for number in block % 4],
            "published": published,
            PUBLISHED_SUBSET: np.where(block % 4 == 0, "test", "train"),
            "cores": part % 7 * 8.0,
            "cores_enabled_total": 32.0 * (1 + block % 5),
            "memory_gb": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(1, 5000, rows)),
            "os": rng.choice(["one", "two", None], rows),
            "deployment": [f"d{number}" for number in block // 3],
            "model_family": [f"m{number}" for number in block // 3 % 6],
            "gpu": [f"g{number}" for number in block % 5],
            "generation": [f"n{number}" for number in block % 5 // 2],
            "core_family": [f"c{number}" for number in block % 19],
            "family": [f"f{number}" for number in block % 17],
            "hw_vendor": [f"v{number}" for number in block % 23],
            **dict.fromkeys(("system_stem", "compiler_vendor", "compiler_major_minor"), "same"),
            **dict.fromkeys(("threads_per_core", "dimm_count", "dimm_gb", "mem_eff_mts"), 2.0),
            "chips": 1.0 + block % 2,
            "test_month": pd.Timestamp("2026-03") + pd.to_timedelta(block % 4 * 31, unit="D"),
            "generation_year": 2020.0 + block % 5,
            "concurrency": 2.0 ** (1 + block % 9),
            "params": params,
            "tokens": tokens,
            "compute": 6 * params * tokens / 1e18,
            "training_set": [f"t{number}" for number in block % 3],
            **draw_tenants(rng, block),
            "scenario": np.where(block % 3 == 0, "dynamic", "pair"),
            "intensity": np.where(block % 4 < 2, 1.0, 0.4),
            "round": np.array(ROUNDS)[np.searchsorted(ROUND_STARTS, published, side="right")],
            "model": [f"m{number}" for number in block % 4],
            "silicon": [f"n{number}" for number in block % 9],
            "system": [f"y{number}" for number in block // 2],
            "submitter": [f"u{number}" for number in block % 29],
            "organization": [f"o{number}" for number in block % 11],
            "score": rng.random(rows),
        }
    )
    frame["aggressor_intensity"] = np.where(block % 4 == 3, 1.0, frame["intensity"])
    frame.loc[frame["aggressors"] == "", "aggressor_intensity"] = np.nan
    return build_table("generated", frame.iloc[rng.permutation(rows)], COLUMNS)


@cache
def made(name, rows=300):
    """Return a table and its folds; tests only read them."""
    table = generate(8, rows)
    return table, splits.make(name, table, 0)


def moved(folds, rows, part, fold="fold_0"):
    broken = folds.copy()
    broken.loc[rows, fold] = part
    return broken


def companions(table, names, rows):
    """Return one row that shares the named columns with another among `rows`."""
    return table.frame.loc[rows][table.frame.loc[rows].duplicated(names)].index[0]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LEARNING_CURVE])
@given(seed=st.integers(0, 30), split_seed=st.integers(0, 3))
@settings(deadline=None, max_examples=4)
def test_nothing_leaks(name, seed, split_seed):
    table = generate(seed)
    folds = splits.make(name, table, split_seed)
    assert splits.leaks(table, folds, name) == []
    assert folds.index.equals(table.frame.index)
    assert list(folds) == [f"fold_{number}" for number in range(folds.shape[1])] != []
    assert (folds == "train").any().all()
    assert (folds == "test").any().all()


@pytest.mark.parametrize("name", SOUND)
def test_no_leak_by_plain_sets(name):
    """The same rules once more, without the leakage check's code."""
    table, folds = made(name)
    frame = table.frame
    for fold in folds.to_numpy().T:
        learned, test = frame[np.isin(fold, ["train", "validation"])], frame[fold == "test"]
        assert not set(learned["block"]) & set(test["block"])
        if name in UNSEEN:
            held_out = HELD_OUT.get(name, "part")
            assert not set(learned[held_out]) & set(test[held_out])
        if name == "next_generation":
            assert set(test["generation"]) == {"n2"}
            assert not set(learned["generation"]) & {"n2"}
        if name == "larger_load":
            assert learned["concurrency"].max() <= 64 < test["concurrency"].min()
        if name == "smaller_machine":
            assert test["cores_enabled_total"].max() < 96 <= learned["cores_enabled_total"].min()
        if name == BY_TEST_MONTH:
            assert learned["test_month"].max() < pd.Timestamp("2026-05") <= test["test_month"].min()
        if name == "next_month":
            assert learned["test_month"].max() < test["test_month"].min()
            assert test["test_month"].dt.to_period("M").nunique() == 1
        if name == "static_to_dynamic":
            assert set(test["scenario"]) == {"dynamic"} and "dynamic" not in set(learned["scenario"])
        if name == "low_to_high_intensity":
            assert set(test["aggressor_intensity"]) == {1.0}
            assert not (learned["aggressor_intensity"] == 1).any()
        if name in FORWARD:
            assert learned["published"].max() < test["published"].min()
        if name.startswith("random"):
            keys = [
                set(map(str, part[["cores", "memory_gb", "os"]].itertuples(index=False))) for part in (learned, test)
            ]
            assert not keys[0] & keys[1]


@pytest.mark.parametrize("name", LEAKING)
def test_a_leaking_split_leaks_and_says_so(name):
    table, folds = made(name)
    fold = folds["fold_0"]
    blocks = [set(table.frame["block"][fold.isin(parts)]) for parts in (["train", "validation"], ["test"])]
    assert blocks[0] & blocks[1]
    assert "leaks on purpose" in splits.describe_split(name)


@pytest.mark.parametrize("name", NAMES)
def test_deterministic_and_free_of_row_order(name):
    table, folds = made(name)
    pd.testing.assert_frame_equal(folds, splits.make(name, table, 0))
    shuffled = build_table("generated", table.frame.sample(frac=1, random_state=0), COLUMNS)
    again = splits.make(name, shuffled, 0)
    parts = dict(zip(table.frame["id"], folds.to_numpy().tolist(), strict=True))
    assert dict(zip(shuffled.frame["id"], again.to_numpy().tolist(), strict=True)) == parts


WITHOUT_DRAWS = {
    "compute_300x",
    "larger_model_1b",
    "larger_model_2b",
    "largest_compute",
    "longer_training",
    "published_more",
    "unseen_microarchitecture",
    "new_accelerator",
    "model_on_one",
    *KNOW_SOME,
}
"""Splits whose validation rows are the largest or the last of the training rows, or the smallest of few groups."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {*FORWARD, *WITHOUT_DRAWS}])
def test_seed_matters(name):
    table, folds = made(name)
    assert not folds.equals(splits.make(name, table, 1))


@pytest.mark.parametrize("name", NAMES)
def test_never_looks_at_the_target(name):
    table, folds = made(name)
    unmeasured = replace(table, frame=table.frame.assign(score=np.nan))
    pd.testing.assert_frame_equal(folds, splits.make(name, unmeasured, 0))


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("part", ["train", "validation"])
def test_a_check_catches_a_split_block(name, part):
    table, folds = made(name)
    row = companions(table, ["block"], folds["fold_0"] == "test")
    assert any("block" in problem for problem in splits.leaks(table, moved(folds, row, part), name))


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize(("source", "target"), [("test", "train"), ("test", "validation"), ("validation", "train")])
def test_a_check_catches_a_known_entity(name, source, target):
    table, folds = made(name)
    held_out, noun = HELD_OUT.get(name, "part"), f"values of {HELD_OUT[name]}" if name in HELD_OUT else "entities"
    row = companions(table, [held_out], folds["fold_0"] == source)
    assert any(noun in problem for problem in splits.leaks(table, moved(folds, row, target), name))


@pytest.mark.parametrize("source", ["test", "validation"])
def test_a_check_catches_a_known_feature_vector(source):
    table = generate(7)
    table = replace(table, frame=table.frame.copy())
    folds = splits.make("random", table, 0)
    first = folds.index[folds["fold_0"] == "train"][0]
    second = folds.index[folds["fold_0"] == source][0]
    features = table.select(role=Role.FEATURE)
    table.frame.loc[second, features] = table.frame.loc[first, features].to_numpy()
    assert any("feature vectors" in problem for problem in splits.leaks(table, folds, "random"))


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("test", "train", "not known before"),
        ("test", "validation", "not known before"),
        ("train", "test", "outside"),
        ("validation", "train", "not later"),
        ("train", "validation", "not later"),
    ],
)
def test_a_check_catches_a_wrong_date(name, source, target, message):
    table, folds = made(name, rows=900)
    time = table.frame["published"][folds["fold_0"] == source]
    row = time.idxmax() if source != "train" else time.idxmin()
    assert any(message in problem for problem in splits.leaks(table, moved(folds, row, target), name))


@pytest.mark.parametrize("name", LEARNING_CURVE)
@given(seed=st.integers(0, 30), split_seed=st.integers(0, 3))
@example(seed=2352, split_seed=0)
@settings(deadline=None, max_examples=3)
def test_a_learning_curve_split_tests_the_same_rows_and_learns_some_of_the_others(name, seed, split_seed):
    form, table = splits.learning_curve_point(name), generate(seed)
    base, folds = (splits.function(split)(table, split_seed) for split in (form.base, name))
    if not (folds == "train").any().all():  # few rows, none of them left to train on: told to the user, never trained
        with pytest.raises(UserError, match="no train rows"):
            splits.make(name, table, split_seed)
        return
    assert splits.leaks(table, folds, name) == []
    assert folds.index.equals(table.frame.index)
    assert list(folds) == list(base)
    assert splits.is_compared(form.base)
    for fold in base:
        assert ((folds[fold] == "test") == (base[fold] == "test")).all()
        assert base[fold][folds[fold].isin(["train", "validation"])].isin(["train", "validation"]).all()
        assert (folds[fold] == "train").sum() < (base[fold] == "train").sum()
        assert (folds[fold] == "validation").any()


@pytest.mark.parametrize("name", [name for name in LEARNING_CURVE if splits.learning_curve_point(name).years])
def test_a_check_catches_a_row_from_before_the_window(name):
    table, folds = made(name)
    old = table.frame["published"][folds["fold_0"] == "unused"].idxmin()
    assert any(
        "training rows from before" in problem for problem in splits.leaks(table, moved(folds, old, "train"), name)
    )


@pytest.mark.parametrize("name", FEW_SHOT)
def test_every_new_entity_is_revealed_by_its_shots_and_no_other(name):
    table, folds = made(name)
    frame, shots = table.frame, int(name.rpartition("_")[2])
    before, after = made("forward_2023")[1]["fold_0"], folds["fold_0"]
    shown = (before == "test") & (after == "train")
    known = set(frame["part"][before.isin(["train", "validation"])])
    counts = frame["part"][before == "test"].value_counts()
    for part, rows in counts[~counts.index.isin(known)].items():
        assert (frame["part"][shown] == part).sum() == min(shots, rows)
    assert not set(frame["part"][shown]) & known
    assert (after[before != "test"] == before[before != "test"]).all()
    for part in set(frame["part"][shown]):
        last = frame["published"][shown & (frame["part"] == part)].max()
        others = frame["published"][(after == "test") & (frame["part"] == part)]
        assert not (others < last).any(), "a row revealed that is newer than a test row of its entity"


@pytest.mark.parametrize("name", FEW_SHOT)
def test_a_check_catches_one_shot_too_many_and_a_known_entity(name):
    table, folds = made(name)
    late = table.frame[(table.frame["published"] >= "2023-01")]
    part = folds["fold_0"]
    known = set(table.frame["part"][part.isin(["train", "validation"]) & (table.frame["published"] < "2023-01")])
    new = late.index[~late["part"].isin(known)]
    assert any("more than" in problem for problem in splits.leaks(table, moved(folds, new, "train"), name))
    old = late.index[late["part"].isin(known)]
    assert any("known before" in problem for problem in splits.leaks(table, moved(folds, old, "train"), name))


@pytest.mark.parametrize("name", FEW_SHOT)
def test_a_check_catches_a_revealed_row_that_is_newer_than_a_test_row(name):
    table, folds = made(name, rows=900)
    frame, after = table.frame, folds["fold_0"]
    shown = after.isin(["train", "validation"]) & (frame["published"] >= "2023-01")
    first = frame["published"][shown].groupby(frame["part"][shown]).max()
    newer = (after == "test") & (frame["published"] > frame["part"].map(first))
    part = frame["part"][newer].iloc[0]
    swapped = moved(folds, frame.index[shown & (frame["part"] == part)], "test")
    swapped = moved(swapped, frame.index[newer & (frame["part"] == part)][:1], "train")
    assert any("older than a revealed row" in problem for problem in splits.leaks(table, swapped, name))


def test_a_check_catches_a_row_of_later_test():
    table, folds = made(BY_TEST_MONTH)
    row = folds.index[folds["fold_0"] == "test"][0]
    problems = splits.leaks(table, moved(folds, row, "train"), BY_TEST_MONTH)
    assert any("not tested before" in problem for problem in problems)


@pytest.mark.parametrize("name", KNOW_ONE)
def test_one_result_of_the_tested_entity_is_known_and_no_other(name):
    table, folds = made(name)
    frame = table.frame
    tested = pd.Series(0, frame.index)
    for fold in folds:
        test, learned = folds[fold] == "test", folds[fold].isin(["train", "validation"])
        (part,) = frame["part"][test].unique()
        (known,) = frame.index[learned & (frame["part"] == part)]
        is_other = frame["suite"][test] != frame.at[known, "suite"]
        assert is_other.all() if name == "known_in_another_suite" else not is_other.any()
        tested += test
    assert tested.max() == 1 and tested.sum() > 100
    row = folds.index[folds["fold_0"] == "test"][0]
    assert any("tested entities" in problem for problem in splits.leaks(table, moved(folds, row, "train"), name))


@pytest.mark.parametrize("name", KNOW_SOME)
def test_so_many_results_of_each_new_entity_are_known_and_no_later_ones(name):
    table, folds = made(name, rows=900)
    frame, shots = table.frame, KNOW_SOME[name]
    assert list(folds)
    for fold in folds:
        test, learned = folds[fold] == "test", folds[fold].isin(["train", "validation"])
        (round_,) = frame["round"][test].unique()
        is_new = frame["part"].isin(frame["part"][test])
        assert (frame["part"][learned & is_new].value_counts() == shots).all()
        assert (frame["round"][learned & ~is_new] < round_).all()
        assert set(frame["part"][test]) == set(frame["part"][learned & is_new])
    row = companions(table, ["part"], test)
    assert any("more than" in problem for problem in splits.leaks(table, moved(folds, row, "train", fold), name))
    other = frame.index[learned & ~is_new][0]
    late = replace(table, frame=frame.assign(round=frame["round"].where(frame.index != other, round_)))
    assert any("tested round" in problem for problem in splits.leaks(late, folds, name))


def test_a_check_catches_a_second_known_entity_of_a_tested_model():
    table, folds = made("model_on_one")
    for fold in folds:
        test = folds[fold] == "test"
        known = folds[fold].isin(["train", "validation"]) & table.frame["model"].isin(table.frame["model"][test])
        assert (table.frame["part"][known].groupby(table.frame["suite"][known]).nunique() == 1).all()
        assert not set(table.frame["part"][known]) & set(table.frame["part"][test])
    row = folds.index[folds["fold_0"] == "test"][0]
    broken = moved(folds, row, "train")
    assert any("2 accelerators known" in problem for problem in splits.leaks(table, broken, "model_on_one"))


def test_small_tables_hold_out_one_entity_at_a_time_and_leave_unused_rows_out():
    table = generate(8)
    frame = table.frame.assign(system_stem=(table.frame["part"] == "p3").map({True: 1.0, False: 0.0}))
    marked = tuple(
        replace(c, kind=Kind.NUMERICAL, tags=(Tag.UNUSED,)) if c.name == "system_stem" else c for c in COLUMNS
    )
    folds = splits.make("unseen_cpu", replace(table, frame=frame, columns=marked, facts={LEAVE_ONE_OUT: True}), 0)
    by_part = (folds == "test").groupby(frame["part"]).any()
    assert folds.shape[1] == frame["part"].nunique() - 1
    assert (by_part.sum() == 1).all() and not by_part.loc["p3"].any()
    assert (folds[frame["part"] == "p3"] == "unused").all(axis=None)


@pytest.mark.parametrize("name", NAMES)
def test_a_check_catches_malformed_folds(name):
    table, folds = made(name)
    every = folds.index
    assert any("no test rows" in problem for problem in splits.leaks(table, moved(folds, every, "train"), name))
    assert any("no train rows" in problem for problem in splits.leaks(table, moved(folds, every, "test"), name))
    assert any("other than" in problem for problem in splits.leaks(table, moved(folds, every[0], "both"), name))
    assert splits.leaks(table, folds.iloc[1:], name)


@pytest.mark.parametrize("name", UNSEEN)
def test_a_check_catches_rows_tested_twice(name):
    table, folds = made(name)
    twice = folds.assign(fold_1=folds["fold_0"])
    assert any("more than one fold" in problem for problem in splits.leaks(table, twice, name))
