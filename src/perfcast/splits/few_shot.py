"""Few-shot splits: forward splits with some measured results of every new entity in training."""

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
    """Return the split with the test rows of forward_2023, and `shots` results of every new entity in training."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        return _few_shot(forward_2023(table, seed), table, shots, seed)

    plural = "" if shots == 1 else "s"
    amount = "one" if shots == 1 else shots
    description = f"machines published from 2023 on, with {amount} measured result{plural} of each"
    return declare_split(f"new machines, {shots} result{plural} known", description, check_revealed("2023-01", shots))(
        make
    )


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


few_shot_1 = reveal(1)
few_shot_3 = reveal(3)
few_shot_5 = reveal(5)
