"""Few-shot splits: forward splits with some measured results of every new entity in training."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_revealed
from perfcast.splits.declaration import declare_split
from perfcast.splits.forward import forward_2023
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import as_frame, by_key


@declare_split(
    "new machines, 1 result known",
    "machines published from 2023 on, with one measured result of each",
    check_revealed("2023-01", 1),
)
def few_shot_1(table: Table, seed: int) -> pd.DataFrame:
    """Test on the rows of forward_2023, with one measured result of every new entity in training."""
    return _few_shot(forward_2023(table, seed), table, 1, seed)


@declare_split(
    "new machines, 3 results known",
    "machines published from 2023 on, with 3 measured results of each",
    check_revealed("2023-01", 3),
)
def few_shot_3(table: Table, seed: int) -> pd.DataFrame:
    """Test on the rows of forward_2023, with three measured results of every new entity in training, in any task."""
    return _few_shot(forward_2023(table, seed), table, 3, seed)


@declare_split(
    "new machines, 5 results known",
    "machines published from 2023 on, with 5 measured results of each",
    check_revealed("2023-01", 5),
)
def few_shot_5(table: Table, seed: int) -> pd.DataFrame:
    """Test on the rows of forward_2023, with five measured results of every new entity in training, in any task."""
    return _few_shot(forward_2023(table, seed), table, 5, seed)


def _few_shot(folds: pd.DataFrame, table: Table, shots: int, seed: int) -> pd.DataFrame:
    """Move at most `shots` test rows of every entity without training rows to train, drawn at random.

    Other test rows of such a row's block are unused: training would know them. An entity whose rows are all of one
    block has none left in test.
    """
    ordered = by_key(table)
    subset = folds["fold_0"].loc[ordered.frame.index].to_numpy(dtype=object)
    entities, blocks = by_tag(ordered, Tag.ENTITY), by_tag(ordered, Tag.BLOCK)
    new = (subset == "test") & ~np.isin(entities, entities[np.isin(subset, ["train", "validation"])])
    drawn = np.random.default_rng(seed).permutation(np.flatnonzero(new))
    rank = pd.Series(entities[drawn]).groupby(entities[drawn]).cumcount().to_numpy()
    shown = drawn[rank < shots]
    subset[(subset == "test") & np.isin(blocks, blocks[shown])] = "unused"
    subset[shown] = "train"
    return as_frame(table, ordered, [subset])
