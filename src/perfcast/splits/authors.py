"""The question that a data set's own authors asked."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.errors import UserError
from perfcast.schema import Table, Tag
from perfcast.splits._audit import audited_by
from perfcast.splits._groups import by_tag
from perfcast.splits._parts import PUBLISHED_PART, as_frame, assigned, by_key, draw_valid, without_leaks


@audited_by()
def published(table: Table, seed: int) -> pd.DataFrame:
    """Ask what the data set's own authors asked: their training, valid and test parts; other rows are unused.

    Where the authors set no rows aside for choices, 12 % of the training rows, by block, are valid, if training has two
    blocks or more.
    Raises: UserError when the data set was published without a split.
    """
    if PUBLISHED_PART not in table.frame:
        raise UserError(
            "the split 'published' needs a data set with a split of its own",
            f"{table.dataset!r} has no column {PUBLISHED_PART!r}",
            "choose another split",
        )
    ordered = by_key(table)
    part = ordered.frame[PUBLISHED_PART]
    train, valid, test = ((part == name).to_numpy() for name in ("train", "valid", "test"))
    blocks = by_tag(ordered, Tag.BLOCK)
    if not valid.any():
        valid = draw_valid(blocks, ~train, np.random.default_rng(seed))
    return as_frame(table, ordered, [without_leaks(assigned(test, valid, ~(train | valid | test)), blocks)])
