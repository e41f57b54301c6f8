"""Questions after training on a share of their training rows: what more results would be worth.

The draws are nested: what is learned at 5 % is learned at 10 % too. The valid rows shrink in the same proportion.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from perfcast.schema import Table, Tag
from perfcast.splits._audit import Split
from perfcast.splits._groups import by_tag
from perfcast.splits._parts import as_frame, by_key
from perfcast.splits._shrunken import shrinks
from perfcast.splits.drawn import look_alikes, random
from perfcast.splits.unseen import unseen_cpu


def share_of(base: Split, percent: int, groups: Callable[[Table], np.ndarray]) -> Split:
    """Make the split that asks as `base` does after training on `percent` % of its training rows.

    Whole groups are drawn, until as near to the share as they allow; one is always left. `groups` numbers the groups of
    a table's rows, those that `base` itself keeps together.
    """

    def make(table: Table, seed: int) -> pd.DataFrame:
        ordered = by_key(table)
        folds = base(table, seed).loc[ordered.frame.index]
        numbers = groups(ordered)
        shrunk = [
            _first(folds[name].to_numpy(dtype=object), numbers, percent / 100, np.random.default_rng([seed, fold]))
            for fold, name in enumerate(folds)
        ]
        return as_frame(table, ordered, shrunk)

    make.__doc__ = f"Ask as {base.__name__} does, after training on {percent} % of its training rows."
    return shrinks(base, share=percent / 100)(make)


def _first(parts: np.ndarray, groups: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Keep the first groups, in an order drawn at random, of train and of valid; other rows of these are unused.

    The order does not depend on the share, which is what nests the draws.
    """
    if not len(groups):
        return parts
    order = rng.permutation(int(groups.max()) + 1)
    for part in ("train", "valid"):
        sizes = np.bincount(groups[parts == part], minlength=len(order))[order]
        # a group is in when at least half of it is: the sum is as near to the share as whole groups allow
        kept = np.cumsum(sizes) - sizes / 2 <= share * sizes.sum()
        kept[: np.argmax(sizes > 0) + 1] = True
        parts = np.where((parts == part) & ~np.isin(groups, order[kept]), "unused", parts)
    return parts


def _entities(table: Table) -> np.ndarray:
    return by_tag(table, Tag.ENTITY)


random_05_percent = share_of(random, 5, look_alikes)
random_10_percent = share_of(random, 10, look_alikes)
random_20_percent = share_of(random, 20, look_alikes)
random_40_percent = share_of(random, 40, look_alikes)

unseen_cpu_05_percent = share_of(unseen_cpu, 5, _entities)
unseen_cpu_10_percent = share_of(unseen_cpu, 10, _entities)
unseen_cpu_20_percent = share_of(unseen_cpu, 20, _entities)
unseen_cpu_40_percent = share_of(unseen_cpu, 40, _entities)
