"""Forward splits: training is before a month, test from it on; and few-shot splits.

Few-shot splits have the first measured results of every new entity in training. Their version 1 revealed results drawn
at random: most test rows of an entity were then older than a revealed result of it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_revealed, check_window
from perfcast.splits.declaration import Split, declare_rolling, declare_split
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import as_frame, assigned, by_key
from perfcast.utils.errors import UserError

VALID_MONTHS = 12
LAST_SHARE = 0.20


def _last_share(table: Table, fold: pd.Series) -> list[str]:
    """Check the fold against the latest month from which on there are `LAST_SHARE` of the rows, counted anew."""
    time = table.frame[table.column_of(Tag.TIME)]
    months = time.dropna().dt.to_period("M")
    since = months.value_counts().sort_index(ascending=False).cumsum()
    start = str(since[since >= LAST_SHARE * len(months)].index.max())
    return check_window(start, "2200-01")(table, fold)


def window(start: str, end: str, scenario: str = "") -> Split:
    """Return the split that trains before month `start` and tests from then until before `end`."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        del seed
        return _forward(table, start, end)

    make.__name__ = f"forward_{start[:4]}"  # names the base of its learning-curve splits
    description = f"machines published from {start[:4]} on, trained on earlier results"
    label = f"releases from {start[:4]}"
    check = check_window(start, end)
    return declare_split(label, description, check, scenario=scenario, since=start)(make)


@declare_split("latest releases", "the latest fifth of the results, trained on all earlier ones", _last_share)
def forward_last(table: Table, seed: int) -> pd.DataFrame:
    """Test on the last fifth: test from the latest month on that has 20 % of the rows at or after it, train before.

    Raises: UserError when no row has a date.
    """
    del seed
    ordered = by_key(table)
    time = ordered.frame[ordered.column_of(Tag.TIME)].dropna().sort_values(ignore_index=True)
    if time.empty:
        raise UserError("the split 'forward_last' needs dates", f"{table.dataset!r} has none", "choose another split")
    start = time.iloc[len(time) - int(np.ceil(LAST_SHARE * len(time)))].to_period("M")
    return _forward(table, str(start), str(time.iloc[-1].to_period("M") + 1))


def _forward(table: Table, start: str, end: str) -> pd.DataFrame:
    """Train before `start`, test until before `end`; validation rows are the last twelve months with training rows.

    Where all training rows are of these months, validation rows are the last fifth of them.
    A training row of a block that also has test rows is unused. A test row whose exact features were measured before
    `start` stays in test: such results are known at that time.
    """
    ordered = by_key(table)
    time = ordered.frame[ordered.column_of(Tag.TIME)]
    train = (time < pd.Timestamp(start)).to_numpy()
    test = ((time >= pd.Timestamp(start)) & (time < pd.Timestamp(end))).to_numpy()
    blocks = by_tag(ordered, Tag.BLOCK)
    train = train & ~np.isin(blocks, blocks[test])
    recent = time[train].max() - pd.DateOffset(months=VALID_MONTHS)
    if train.any() and not (time[train] <= recent).any():
        recent = time[train].quantile(1 - LAST_SHARE)
    validation = train & (time > recent).to_numpy()
    return as_frame(table, ordered, [assigned(test, validation, ~(train | test))])


forward_2021 = window("2021-01", "2024-01")
forward_2023 = window("2023-01", "2025-01", "the next generation")
forward_2024 = window("2024-01", "2025-01", "the next year")
forward_2025 = window("2025-01", "2026-04", "the newest releases")


def rolling(base: Split, scenario: str = "") -> Split:
    """Return the split whose test rows, those of `base`, are predicted month by month."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        return base(table, seed)

    return declare_rolling(base, base.__name__.removeprefix("forward_"), scenario)(make)


rolling_2023 = rolling(forward_2023)
rolling_2024 = rolling(forward_2024, "the next month")
rolling_2025 = rolling(forward_2025, "the newest months")


def reveal(shots: int) -> Split:
    """Return the split with the test rows of forward_2023, and the first `shots` results of new entities known."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        return _few_shot(forward_2023(table, seed), table, shots, seed)

    first, known = ("first", "1 result") if shots == 1 else (f"first {shots}", f"{shots} results")
    description = f"machines published from 2023 on, with the {first} measured {known.split()[1]} of each"
    return declare_split(f"new machines, {known} known", description, check_revealed("2023-01", shots), version=2)(make)


def _few_shot(folds: pd.DataFrame, table: Table, shots: int, seed: int) -> pd.DataFrame:
    """Move the first `shots` test rows of every entity without training rows to train, by month of publication.

    Dates are months. Rows of one month are in random order, and those that are not revealed stay in test: nobody knows
    which of them came first. Other test rows of a revealed row's block are unused: training would know them. An entity
    whose rows are all of one block has none left in test.
    """
    ordered = by_key(table)
    subset = folds["fold_0"].loc[ordered.frame.index].to_numpy(dtype=object)
    entities = by_tag(ordered, Tag.ENTITY)
    blocks = by_tag(ordered, Tag.BLOCK)
    new = (subset == "test") & ~np.isin(entities, entities[np.isin(subset, ["train", "validation"])])
    months = ordered.frame[ordered.column_of(Tag.TIME)].to_numpy()
    shown = first_results(entities, months, new, shots, np.random.default_rng(seed))
    subset[(subset == "test") & np.isin(blocks, blocks[shown])] = "unused"
    subset[shown] = "train"
    return as_frame(table, ordered, [subset])


def first_results(
    entities: np.ndarray, months: np.ndarray, new: np.ndarray, shots: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the places of the first `shots` of the `new` rows of every entity, rows of one month in random order.

    Shapes: entities, months and new (bool) (n,).
    """
    drawn = rng.permutation(np.flatnonzero(new))
    in_time = drawn[np.argsort(months[drawn], kind="stable")]
    rank = pd.Series(entities[in_time]).groupby(entities[in_time]).cumcount().to_numpy()
    return np.asarray(in_time[rank < shots])


few_shot_1 = reveal(1)
few_shot_3 = reveal(3)
few_shot_5 = reveal(5)
