"""Questions about tasks, such as devices, of which only a few measurements are known."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.errors import UserError
from perfcast.schema import Table, Tag
from perfcast.splits._audit import Audit, audited_by
from perfcast.splits._groups import by_tag
from perfcast.splits._parts import PUBLISHED_PART, as_frame, by_key

DRAWS = 5
JUDGED = 3000
"""Most entities that are judged, over all draws: more would cost time and tell nothing new."""


def _entities_unknown(table: Table, fold: pd.Series) -> list[str]:
    """Check that no training row, of whatever task, is of an entity that is asked about."""
    entity = table.frame[table.column_of(Tag.ENTITY)].astype("str")
    both = set(entity[fold.isin(["train", "valid"])]) & set(entity[fold == "test"])
    return [f"{len(both)} entities both in training and in test"] if both else []


def _few_known(shots: int) -> Audit:
    """Make the audit that training has rows of at most `shots` entities of every task that is asked about."""

    def audit(table: Table, fold: pd.Series) -> list[str]:
        task = table.frame[table.column_of(Tag.TASK)].astype("str")
        learned = fold.isin(["train", "valid"])
        known = table.frame.loc[learned, table.column_of(Tag.ENTITY)].groupby(task[learned]).nunique()
        many = [name for name in sorted(set(task[fold == "test"])) if known.get(name, 0) > shots]
        return [f"more than {shots} entities known of {', '.join(many)}"] if many else []

    return audit


@audited_by(_entities_unknown, _few_known(10))
def published_drawn_10(table: Table, seed: int) -> pd.DataFrame:
    """Ask about the tasks that the data set's authors asked about, with ten entities drawn at random measured on each.

    Five draws, one per fold. Each draws as many entities to learn from as the authors had; ten of them are measured on
    every task, the others on the training tasks alone, and on the valid ones to be judged by there. Test rows are of
    other entities, drawn too and not trimmed, at most 3000 in all and different ones in every fold.
    Raises: UserError when the data set was published without a split, or names no tasks.
    """
    return _drawn(table, 10, seed)


def _drawn(table: Table, shots: int, seed: int) -> pd.DataFrame:
    names = table.select(tag=Tag.TASK)
    if PUBLISHED_PART not in table.frame or not names:
        raise UserError(
            "the split needs tasks, and a column that tells which of them the authors asked about",
            f"{table.dataset!r} lacks {PUBLISHED_PART!r} or a task",
            "choose another split",
        )
    ordered = by_key(table)
    task, part = ordered.frame[names[0]].astype("str"), ordered.frame[PUBLISHED_PART]
    asked = task.isin(set(task[part == "test"])).to_numpy()
    chosen_by = task.isin(set(task[part == "valid"])).to_numpy() & ~asked
    learned = task.isin(set(task[part == "train"])).to_numpy() & ~asked & ~chosen_by
    entity = by_tag(ordered, Tag.ENTITY)
    drawn = np.random.default_rng(seed).permutation(np.unique(entity[asked]))
    size = len(np.unique(entity[learned & part.isin(["train"]).to_numpy()]))
    judged = np.array_split(drawn[: min(JUDGED, len(drawn) // 2)], DRAWS)
    folds = []
    for fold, own in enumerate(judged):
        others = np.random.default_rng([seed, fold]).permutation(np.setdiff1d(entity, own))
        pool, shown = np.isin(entity, others[:size]), np.isin(entity, others[:shots])
        parts = np.full(len(entity), "unused", dtype=object)
        parts[(learned & pool) | ((asked | chosen_by) & shown)] = "train"
        parts[chosen_by & pool & ~shown] = "valid"
        parts[asked & np.isin(entity, own)] = "test"
        folds.append(parts)
    return as_frame(table, ordered, folds)
