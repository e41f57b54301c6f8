"""Learning-curve splits: nested, of the named size, and of the last years only."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from perfcast import splits
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.splits.declaration import LearningCurvePoint, declaration_of, declare_learning_curve, declare_split

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("block", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.BLOCK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
)
SHARES = [(base, [5, 10, 20, 40]) for base in ("random", "unseen_cpu")]
YEARS = ["1_year", "2_years", "3_years", "4_years"]


def table(rows=4000):
    """One result a week in blocks of two, of two hundred parts, from 2015 on."""
    number = np.arange(rows)
    frame = pd.DataFrame(
        {
            "id": [f"r{index:04d}" for index in number],
            "block": [f"b{index // 2}" for index in number],
            "part": [f"p{index // 2 % 200}" for index in number],
            "published": pd.Timestamp("2015-01-01") + pd.to_timedelta(number * 3650 / rows, unit="D"),
            "cores": number.astype(float),
        }
    )
    frame["published"] = frame["published"].dt.to_period("M").dt.to_timestamp()
    return build_table("weekly", frame, COLUMNS)


@pytest.mark.parametrize(("base", "shares"), SHARES)
def test_shares_are_nested_whole_groups_and_as_large_as_they_say(base, shares):
    given = table()
    folds = [splits.make(f"{base}_{share:02d}_percent", given, 0) for share in shares]
    folds.append(splits.make(base, given, 0))
    groups = given.frame["block" if base == "random" else "part"]
    for fold in folds[-1]:
        for part in ("train", "validation"):
            held = [set(given.frame.index[fold_part[fold] == part]) for fold_part in folds]
            assert all(smaller < larger for smaller, larger in pairwise(held))
            largest = groups[list(held[-1])].value_counts().max()
            for share, rows in zip(shares, held, strict=False):
                assert abs(len(rows) - share / 100 * len(held[-1])) <= largest / 2
                inside, outside = groups[list(rows)], groups[list(held[-1] - rows)]
                assert not set(inside) & set(outside)


def test_another_seed_draws_other_rows():
    given = table()
    first, second = (splits.make("unseen_cpu_20_percent", given, seed) for seed in (0, 1))
    assert not first.equals(second)


@pytest.mark.parametrize("base", ["forward_2023", "forward_2024"])
def test_years_are_the_last_ones_before_the_cut_and_a_quarter_of_them_is_validation(base):
    given = table()
    whole, time = splits.make(base, given, 0)["fold_0"], given.frame["published"]
    cut = pd.Timestamp(f"{base[-4:]}-01-01")
    for years, name in enumerate(YEARS, start=1):
        fold = splits.make(f"{base}_last_{name}", given, 0)["fold_0"]
        learned, validation = fold.isin(["train", "validation"]), fold == "validation"
        assert (learned == (whole.isin(["train", "validation"]) & (time >= cut - pd.DateOffset(years=years)))).all()
        assert time[validation].min() == cut - pd.DateOffset(months=3 * years)
        assert (learned & (time >= time[validation].min()) == validation).all()


def test_every_form_is_named_after_what_it_is():
    for name in splits.names():
        form = splits.learning_curve_point(name)
        if form is not None and form.share is not None:
            assert name == f"{form.base}_{form.share * 100:02.0f}_percent"
        elif form is not None:
            assert name == f"{form.base}_last_{form.years}_year{'s' if form.years > 1 else ''}"
    assert splits.learning_curve_point("random_05_percent") == LearningCurvePoint("random", share=0.05)
    assert splits.learning_curve_point("forward_2024_last_1_year") == LearningCurvePoint("forward_2024", years=1)
    assert splits.learning_curve_point("few_shot_3") is None


def test_a_learning_curve_split_passes_the_checks_of_its_base_and_its_own():
    def never(_, fold):
        return [f"no row of {len(fold)} may be learned"]

    @declare_split("rows", never)
    def base(table, seed):
        return splits.function("random")(table, seed)

    @declare_learning_curve("half of the rows", base, never, share=0.5)
    def half(table, seed):
        return base(table, seed)

    assert declaration_of(half).checks == (*declaration_of(base).checks, never)
    assert declaration_of(half).learning_curve == LearningCurvePoint("base", share=0.5)


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
        assert "my_split" in splits.names()
        assert splits.is_compared("my_split")
    finally:
        monkeypatch.undo()
        splits._functions.cache_clear()
    assert "my_split" not in splits.names()
