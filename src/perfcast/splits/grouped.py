"""Splits by groups of rows: shuffled rows, similar machines, unseen entities, and the groups of a dataset's authors."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import LEAVE_ONE_OUT, Table, Tag
from perfcast.splits.checks import check_duplicates, check_entities, check_values
from perfcast.splits.declaration import Split, declare_leaking_split, declare_split
from perfcast.splits.row_groups import balanced_folds, by_features, by_tag, by_values, connected, draw
from perfcast.splits.subsets import (
    PUBLISHED_SUBSET,
    TEST_SHARE,
    as_frame,
    assigned,
    by_key,
    draw_validation,
    without_leaks,
)
from perfcast.utils.errors import UserError

UNSEEN_FOLDS = 5


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


def unseen_entities(table: Table, seed: int, column: str = "") -> pd.DataFrame:
    """Return five folds by entity, or one for each value of a column: each is tested once, without a row in training.

    A table with the fact LEAVE_ONE_OUT has one fold for each entity, too.
    """
    ordered = by_key(table)
    entities = by_values(ordered.frame, [column]) if column else by_tag(ordered, Tag.ENTITY)
    blocks = by_tag(ordered, Tag.BLOCK)
    rng = np.random.default_rng(seed)
    count = len(np.unique(entities)) if column or table.facts.get(LEAVE_ONE_OUT) else UNSEEN_FOLDS
    dealt = balanced_folds(entities, count, rng)
    folds = []
    for fold in range(count):
        test = dealt == fold
        folds.append(without_leaks(assigned(test, draw_validation(entities, test, rng)), blocks))
    return as_frame(table, ordered, folds)


def hold_out(label: str, description: str, scenario: str, column: str = "") -> Split:
    """Return the split of unseen entities, or of unseen values of a column; see `unseen_entities`."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        return unseen_entities(table, seed, column)

    return declare_split(label, description, check_values(column) if column else check_entities, scenario=scenario)(
        make
    )


unseen_shape = hold_out(
    "unseen problem shapes",
    "problem shapes without a result in the training data",
    "a problem shape without results",
)
unseen_entity = hold_out(
    "unseen entities", "entities without a result in the training data", "a machine that nobody has measured"
)


@declare_split("published split", "the training and test rows of the dataset's authors")
def published(table: Table, seed: int) -> pd.DataFrame:
    """Use the split of the dataset's authors: their training, validation and test rows; other rows are unused.

    Where the authors have no validation rows, 12 % of the training rows, by block, are, if training has two blocks or
    more.
    Raises: UserError when the dataset was published without a split.
    """
    if PUBLISHED_SUBSET not in table.frame:
        raise UserError(
            "the split 'published' needs a dataset published with a split",
            f"{table.dataset!r} has no column {PUBLISHED_SUBSET!r}",
            "choose another split",
        )
    ordered = by_key(table)
    part = ordered.frame[PUBLISHED_SUBSET]
    train, validation, test = ((part == name).to_numpy() for name in ("train", "validation", "test"))
    blocks = by_tag(ordered, Tag.BLOCK)
    if not validation.any():
        validation = draw_validation(blocks, ~train, np.random.default_rng(seed))
    return as_frame(table, ordered, [without_leaks(assigned(test, validation, ~(train | validation | test)), blocks)])
