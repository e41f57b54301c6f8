"""Learning-curve splits: the test rows of a base split after training on less.

Shares of the training rows are nested: the rows of 5 % are among those of 10 %. Validation rows shrink in the same
proportion. Histories keep the last years before the cut.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_oldest
from perfcast.splits.declaration import Split, declare_learning_curve
from perfcast.splits.forward import VALID_MONTHS, forward_2023, forward_2024
from perfcast.splits.grouped import group_look_alikes, random
from perfcast.splits.subsets import as_frame, assigned, by_key

_VALID_PER_YEAR = 3
"""Validation months per year of history: a quarter of a short one, so that most of it is left to fit on."""


def share_of(base: Split, percent: int, groups: Callable[[Table], np.ndarray]) -> Split:
    """Return the split with the test rows of `base` after training on `percent` % of its training rows.

    Whole groups are drawn, until as near to the share as they allow; one is always left. `groups` numbers the groups of
    a table's rows, those that `base` itself keeps together.
    """

    def make(table: Table, seed: int) -> pd.DataFrame:
        ordered = by_key(table)
        folds = base(table, seed).loc[ordered.frame.index]
        numbers = groups(ordered)
        smaller = [
            _draw_first(folds[name].to_numpy(dtype=object), numbers, percent / 100, np.random.default_rng([seed, fold]))
            for fold, name in enumerate(folds)
        ]
        return as_frame(table, ordered, smaller)

    return declare_learning_curve(f"{percent} % of the training rows", base, share=percent / 100)(make)


def last_years(base: Split, years: int, *, before: str) -> Split:
    """Return the split with the test rows of `base` after training on the last `years` before month `before`, its cut.

    Validation rows are the last three months of one year, six of two, nine of three, and twelve, as of `base`, of more.
    """
    since = pd.Timestamp(before) - pd.DateOffset(years=years)

    def make(table: Table, seed: int) -> pd.DataFrame:
        ordered = by_key(table)
        subset = base(table, seed)["fold_0"].loc[ordered.frame.index].to_numpy(dtype=object)
        time = ordered.frame[ordered.column_of(Tag.TIME)]
        learned = np.isin(subset, ["train", "validation"]) & (time >= since).to_numpy()
        months = min(VALID_MONTHS, _VALID_PER_YEAR * years)
        validation = learned & (time > time[learned].max() - pd.DateOffset(months=months)).to_numpy()
        test = subset == "test"
        return as_frame(table, ordered, [assigned(test, validation, ~(learned | test))])

    span = "year" if years == 1 else f"{years} years"
    return declare_learning_curve(f"last {span}", base, check_oldest(since.strftime("%Y-%m")), years=years)(make)


def _draw_first(subset: np.ndarray, groups: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Keep the first groups, in a random order, of train and of validation; other rows of these are unused.

    The order does not depend on the share, which nests the draws.
    """
    if not len(groups):
        return subset
    order = rng.permutation(int(groups.max()) + 1)
    for name in ("train", "validation"):
        sizes = np.bincount(groups[subset == name], minlength=len(order))[order]
        # a group is in when at least half of it is: the sum is as near to the share as whole groups allow
        drawn = np.cumsum(sizes) - sizes / 2 <= share * sizes.sum()
        drawn[: np.argmax(sizes > 0) + 1] = True
        subset = np.where((subset == name) & ~np.isin(groups, order[drawn]), "unused", subset)
    return subset


random_05_percent = share_of(random, 5, group_look_alikes)
random_10_percent = share_of(random, 10, group_look_alikes)
random_20_percent = share_of(random, 20, group_look_alikes)
random_40_percent = share_of(random, 40, group_look_alikes)

forward_2023_last_1_year = last_years(forward_2023, 1, before="2023-01")
forward_2023_last_2_years = last_years(forward_2023, 2, before="2023-01")
forward_2023_last_3_years = last_years(forward_2023, 3, before="2023-01")
forward_2023_last_4_years = last_years(forward_2023, 4, before="2023-01")

forward_2024_last_1_year = last_years(forward_2024, 1, before="2024-01")
forward_2024_last_2_years = last_years(forward_2024, 2, before="2024-01")
forward_2024_last_3_years = last_years(forward_2024, 3, before="2024-01")
forward_2024_last_4_years = last_years(forward_2024, 4, before="2024-01")
