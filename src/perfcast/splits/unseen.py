"""Unseen splits: entities that training does not have."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_entities
from perfcast.splits.declaration import declare_split
from perfcast.splits.row_groups import balanced_folds, by_tag
from perfcast.splits.subsets import as_frame, assigned, by_key, draw_validation, without_leaks

UNSEEN_FOLDS = 5


@declare_split(
    "unseen problem shapes",
    "problem shapes without a result in the training data",
    check_entities,
    scenario="a problem shape without results",
)
def unseen_shape(table: Table, seed: int) -> pd.DataFrame:
    """Test on problem shapes that nobody has measured: five folds by entity."""
    return unseen_entities(table, seed)


def unseen_entities(table: Table, seed: int) -> pd.DataFrame:
    """Return five folds by entity: each is tested once, without a row of it in training."""
    ordered = by_key(table)
    entities, blocks = by_tag(ordered, Tag.ENTITY), by_tag(ordered, Tag.BLOCK)
    rng = np.random.default_rng(seed)
    dealt = balanced_folds(entities, UNSEEN_FOLDS, rng)
    folds = []
    for fold in range(UNSEEN_FOLDS):
        test = dealt == fold
        folds.append(without_leaks(assigned(test, draw_validation(entities, test, rng)), blocks))
    return as_frame(table, ordered, folds)
