"""More threads: the largest number of workers, which training does not have."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.declaration import declare_split
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import (
    as_frame,
    assigned,
    by_key,
    draw_validation,
    without_leaks,
)
from perfcast.utils.errors import UserError


def _fewer_in_training(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row has more workers than any training row."""
    workers = table.frame[table.column_of(Tag.PARALLEL)]
    learned = workers[fold.isin(["train", "validation"])]
    tested = workers[fold == "test"]
    known = int((tested <= learned.max()).sum())
    return [f"{known} test rows with as many workers as a training row"] if known else []


@declare_split(
    "more threads",
    "the largest number of threads, trained on smaller numbers",
    _fewer_in_training,
)
def more_threads(table: Table, seed: int) -> pd.DataFrame:
    """Test on the largest number of workers (PARALLEL), with all smaller ones in training.

    12 % of the training rows, by entity, are validation rows: fewer numbers of workers than two allow no backtest.
    Raises: UserError when the dataset has no such column, or one number of workers only.
    """
    names = table.select(tag=Tag.PARALLEL)
    if len(names) != 1 or table.frame[names[0]].nunique() < 2:
        raise UserError(
            "the split 'more_threads' needs a dataset measured with several numbers of workers",
            f"{table.dataset!r} has {table.frame[names[0]].nunique() if names else 'no such column'}",
            "choose another split",
        )
    ordered = by_key(table)
    workers = ordered.frame[names[0]]
    test = (workers == workers.max()).to_numpy()
    unused = workers.isna().to_numpy()
    validation = draw_validation(by_tag(ordered, Tag.ENTITY), test | unused, np.random.default_rng(seed))
    return as_frame(
        table,
        ordered,
        [without_leaks(assigned(test, validation, unused), by_tag(ordered, Tag.BLOCK))],
    )
