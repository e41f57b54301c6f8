"""Questions about more workers than any measured."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.errors import UserError
from perfcast.schema import Table, Tag
from perfcast.splits._audit import audited_by
from perfcast.splits._groups import by_tag
from perfcast.splits._parts import as_frame, assigned, by_key, draw_valid, without_leaks


def _fewer_in_training(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row has more workers than any training row."""
    workers = table.frame[table.column_of(Tag.PARALLEL)]
    learned, asked = workers[fold.isin(["train", "valid"])], workers[fold == "test"]
    known = int((asked <= learned.max()).sum())
    return [f"{known} test rows with as many workers as a training row"] if known else []


@audited_by(_fewer_in_training)
def more_threads(table: Table, seed: int) -> pd.DataFrame:
    """Ask about the largest number of workers (PARALLEL), with all smaller ones in training.

    12 % of the training rows, by entity, are valid: fewer numbers of workers than two cannot rehearse the question.
    Raises: UserError when the data set has no such column, or one number of workers only.
    """
    names = table.select(tag=Tag.PARALLEL)
    if len(names) != 1 or table.frame[names[0]].nunique() < 2:
        raise UserError(
            "the split 'more_threads' needs a data set measured with several numbers of workers",
            f"{table.dataset!r} has {table.frame[names[0]].nunique() if names else 'no column of them'}",
            "choose another split",
        )
    ordered = by_key(table)
    workers = ordered.frame[names[0]]
    test = (workers == workers.max()).to_numpy()
    unused = workers.isna().to_numpy()
    valid = draw_valid(by_tag(ordered, Tag.ENTITY), test | unused, np.random.default_rng(seed))
    return as_frame(table, ordered, [without_leaks(assigned(test, valid, unused), by_tag(ordered, Tag.BLOCK))])
