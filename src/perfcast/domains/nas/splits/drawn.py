"""Drawn splits: the test tasks of a dataset's authors, with drawn entities."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import Check
from perfcast.splits.declaration import declare_split
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import PUBLISHED_SUBSET, as_frame, by_key
from perfcast.utils.errors import UserError

SHOTS, DRAWS = 10, 5
MAX_ENTITIES = 3000
"""Most test entities over all draws: more only cost time."""


def _entities_unknown(table: Table, fold: pd.Series) -> list[str]:
    """Check that no training row, of whatever task, is of an entity of test."""
    entity = table.frame[table.column_of(Tag.ENTITY)].astype("str")
    both = set(entity[fold.isin(["train", "validation"])]) & set(entity[fold == "test"])
    return [f"{len(both)} entities both in training and in test"] if both else []


def _few_known(shots: int) -> Check:
    """Return the check that training has rows of at most `shots` entities of every test task."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        task = table.frame[table.column_of(Tag.TASK)].astype("str")
        learned = fold.isin(["train", "validation"])
        known = table.frame.loc[learned, table.column_of(Tag.ENTITY)].groupby(task[learned]).nunique()
        many = [name for name in sorted(set(task[fold == "test"])) if known.get(name, 0) > shots]
        return [f"more than {shots} entities known of {', '.join(many)}"] if many else []

    return check


@declare_split(
    "published split, 10 results known",
    "the test tasks of the dataset's authors, with 10 random results of each task in training",
    _entities_unknown,
    _few_known(SHOTS),
)
def published_drawn_10(table: Table, seed: int) -> pd.DataFrame:
    """Test on the test tasks of the dataset's authors, with ten random entities measured on each.

    Five draws, one per fold. Each draws as many entities to learn from as the authors had; ten of them are measured on
    every task, the others on the training tasks, and on the validation tasks as validation rows. Test rows are of
    other entities, drawn too and not trimmed, at most 3000 in all and different ones in every fold.
    Raises: UserError when the dataset was published without a split, or names no tasks.
    """
    names = table.select(tag=Tag.TASK)
    if PUBLISHED_SUBSET not in table.frame or not names:
        raise UserError(
            "the split needs tasks, and the column of the authors' subsets",
            f"{table.dataset!r} lacks {PUBLISHED_SUBSET!r} or a task",
            "choose another split",
        )
    ordered = by_key(table)
    task, part = ordered.frame[names[0]].astype("str"), ordered.frame[PUBLISHED_SUBSET]
    tested = task.isin(set(task[part == "test"])).to_numpy()
    validation = task.isin(set(task[part == "validation"])).to_numpy() & ~tested
    learned = task.isin(set(task[part == "train"])).to_numpy() & ~tested & ~validation
    entity = by_tag(ordered, Tag.ENTITY)
    drawn = np.random.default_rng(seed).permutation(np.unique(entity[tested]))
    size = len(np.unique(entity[learned & part.isin(["train"]).to_numpy()]))
    draws = np.array_split(drawn[: min(MAX_ENTITIES, len(drawn) // 2)], DRAWS)
    folds = []
    for fold, entities in enumerate(draws):
        others = np.random.default_rng([seed, fold]).permutation(np.setdiff1d(entity, entities))
        pool, shown = np.isin(entity, others[:size]), np.isin(entity, others[:SHOTS])
        subset = np.full(len(entity), "unused", dtype=object)
        subset[(learned & pool) | ((tested | validation) & shown)] = "train"
        subset[validation & pool & ~shown] = "validation"
        subset[tested & np.isin(entity, entities)] = "test"
        folds.append(subset)
    return as_frame(table, ordered, folds)
