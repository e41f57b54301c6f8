"""Questions about entities that training has never seen."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema import Table, Tag
from perfcast.splits._audit import audited_by, entities_apart
from perfcast.splits._groups import balanced_folds, by_tag
from perfcast.splits._parts import as_frame, assigned, by_key, draw_valid, without_leaks

UNSEEN_FOLDS = 5


@audited_by(entities_apart)
def unseen_cpu(table: Table, seed: int) -> pd.DataFrame:
    """Ask about processors nobody has measured: five folds by entity."""
    return _unseen(table, seed)


@audited_by(entities_apart)
def unseen_shape(table: Table, seed: int) -> pd.DataFrame:
    """Ask about problem shapes nobody has measured: five folds by entity."""
    return _unseen(table, seed)


def _unseen(table: Table, seed: int) -> pd.DataFrame:
    ordered = by_key(table)
    entities, blocks = by_tag(ordered, Tag.ENTITY), by_tag(ordered, Tag.BLOCK)
    rng = np.random.default_rng(seed)
    dealt = balanced_folds(entities, UNSEEN_FOLDS, rng)
    folds = []
    for fold in range(UNSEEN_FOLDS):
        test = dealt == fold
        folds.append(without_leaks(assigned(test, draw_valid(entities, test, rng)), blocks))
    return as_frame(table, ordered, folds)
