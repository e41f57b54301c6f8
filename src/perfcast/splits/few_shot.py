"""Questions about the future with some measured results of every new entity revealed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema import Table, Tag
from perfcast.splits._audit import audited_by, revealed
from perfcast.splits._groups import by_tag
from perfcast.splits._parts import as_frame, by_key
from perfcast.splits.forward import forward_2023


@audited_by(revealed("2023-01", 1))
def few_shot_1(table: Table, seed: int) -> pd.DataFrame:
    """Ask as forward_2023 does, with one measured result of every new entity revealed."""
    return _few_shot(forward_2023(table, seed), table, 1, seed)


@audited_by(revealed("2023-01", 3))
def few_shot_3(table: Table, seed: int) -> pd.DataFrame:
    """Ask as forward_2023 does, with three measured results of every new entity revealed, in any task."""
    return _few_shot(forward_2023(table, seed), table, 3, seed)


@audited_by(revealed("2023-01", 5))
def few_shot_5(table: Table, seed: int) -> pd.DataFrame:
    """Ask as forward_2023 does, with five measured results of every new entity revealed, in any task."""
    return _few_shot(forward_2023(table, seed), table, 5, seed)


def _few_shot(folds: pd.DataFrame, table: Table, shots: int, seed: int) -> pd.DataFrame:
    """Move at most `shots` test rows of every entity without training rows to train, drawn at random.

    Other test rows of a revealed row's block are unused: they would be known from it. An entity whose rows are all of
    one block keeps none in test when it is revealed.
    """
    ordered = by_key(table)
    parts = folds["fold_0"].loc[ordered.frame.index].to_numpy(dtype=object)
    entities, blocks = by_tag(ordered, Tag.ENTITY), by_tag(ordered, Tag.BLOCK)
    new = (parts == "test") & ~np.isin(entities, entities[np.isin(parts, ["train", "valid"])])
    drawn = np.random.default_rng(seed).permutation(np.flatnonzero(new))
    rank = pd.Series(entities[drawn]).groupby(entities[drawn]).cumcount().to_numpy()
    shown = drawn[rank < shots]
    parts[(parts == "test") & np.isin(blocks, blocks[shown])] = "unused"
    parts[shown] = "train"
    return as_frame(table, ordered, [parts])
