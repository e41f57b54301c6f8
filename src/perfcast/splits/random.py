"""Random splits: rows drawn one by one, or by groups of related rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_duplicates
from perfcast.splits.declaration import declare_leaking_split, declare_split
from perfcast.splits.row_groups import by_features, by_tag, connected, draw
from perfcast.splits.subsets import TEST_SHARE, as_frame, assigned, by_key, draw_validation


@declare_leaking_split(
    "shuffled rows", "rows drawn one by one: leaks on purpose, only for comparison with published values"
)
def shuffled(table: Table, seed: int) -> pd.DataFrame:
    """Test on rows drawn one by one, 80 % training and 20 % test: for comparison with published errors only.

    It leaks on purpose: most test rows have a sibling in training, of the same submission or with the same features,
    so its errors measure memory, not predictions of unmeasured machines. Papers that shuffle their
    rows are reproduced with it, and with nothing else. 12 % of the training rows are validation rows.
    Source: Tousi and Luján, IEEE Access, 2022.
    """
    ordered = by_key(table)
    rows = np.arange(len(ordered.frame))
    rng = np.random.default_rng(seed)
    test = draw(rows, TEST_SHARE, rng)
    return as_frame(table, ordered, [assigned(test, draw_validation(rows, test, rng))])


@declare_split(
    "similar machines",
    "machines similar to those in the training data",
    check_duplicates,
    scenario="a machine much like measured ones",
)
def random(table: Table, seed: int) -> pd.DataFrame:
    """Test on machines much like known ones: 80 % training, 20 % test, drawn by group.

    A group has a block or every feature in common, over any number of steps. 12 % of training are validation rows.
    """
    ordered = by_key(table)
    groups = group_look_alikes(ordered)
    rng = np.random.default_rng(seed)
    test = draw(groups, TEST_SHARE, rng)
    return as_frame(table, ordered, [assigned(test, draw_validation(groups, test, rng))])


def group_look_alikes(table: Table) -> np.ndarray:
    """Group the rows that `random` keeps together: linked, over any number of steps, by a block or every feature."""
    return connected(by_tag(table, Tag.BLOCK), by_features(table))
