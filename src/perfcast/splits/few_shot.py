"""Few-shot splits: forward splits with the first measured results of every new entity in training.

Version 1 revealed results drawn at random. Most test rows of an entity were then older than a revealed result of it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_revealed
from perfcast.splits.declaration import Split, declare_split
from perfcast.splits.forward import forward_2023
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import as_frame, by_key


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
    entities, blocks = by_tag(ordered, Tag.ENTITY), by_tag(ordered, Tag.BLOCK)
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
