"""Subsets of a fold as arrays over rows in the order of their keys."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.row_groups import draw
from perfcast.utils.errors import UserError

SUBSETS = ("train", "validation", "test", "unused")
"""Values of a fold; "validation" marks the validation rows inside training."""

TEST_SHARE = 0.20
VALIDATION_SHARE = 0.12
PUBLISHED_SUBSET = "published_subset"
"""Provenance column with the subset of every row, for a dataset published with its own split."""


def by_key(table: Table, *names: str) -> Table:
    """Sort by the key of the rows, so that random draws do not depend on the order in which rows arrive.

    Raises: UserError when the table lacks one of the named columns, which the split needs.
    """
    for name in names:
        if name not in table.frame:
            fact = f"{table.dataset!r} has none"
            raise UserError(f"the split needs the column {name!r}", fact, "choose another split")
    return Table(table.dataset, table.frame.sort_values(table.column_of(Tag.ROW)), table.columns, table.facts)


def as_frame(table: Table, ordered: Table, folds: list[np.ndarray]) -> pd.DataFrame:
    """Name the folds, and put their rows, which are in the order of `ordered`, back into that of `table`."""
    columns = {f"fold_{number}": pd.Series(fold, dtype="str") for number, fold in enumerate(folds)}
    return pd.DataFrame(columns).set_axis(ordered.frame.index, axis=0).loc[table.frame.index]


def assigned(test: np.ndarray, validation: np.ndarray, unused: np.ndarray | None = None) -> np.ndarray:
    """Name the subset of every row: `unused` counts before `test`, that before `validation`, and others are train."""
    subsets = np.where(test, "test", np.where(validation, "validation", "train"))
    return subsets if unused is None else np.where(unused, "unused", subsets)


def without_leaks(subsets: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Mark training rows as unused whose block also has test rows."""
    known = np.isin(blocks, blocks[subsets == "test"]) & (subsets != "test")
    return np.where(known, "unused", subsets)


def draw_validation(groups: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the validation rows by group among the rows that are not `other`; none where these are of one group."""
    validation = np.zeros(len(groups), dtype=bool)
    inner = pd.factorize(groups[~other])[0]
    if len(inner) and inner.max() > 0:
        validation[~other] = draw(inner, VALIDATION_SHARE, rng)
    return validation
