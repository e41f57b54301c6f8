"""Parts of a fold as arrays over rows in the order of their keys: what the families of splits share."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema import Table, Tag
from perfcast.splits._groups import draw

TEST_SHARE = 0.20
VALID_SHARE = 0.12
PUBLISHED_PART = "published_part"
"""Provenance column that says, for a data set published with a split of its own, which part a row is of."""


def by_key(table: Table) -> Table:
    """Sort by the key of the rows, so that random draws do not depend on the order in which rows arrive."""
    return Table(table.dataset, table.frame.sort_values(table.column_of(Tag.ROW)), table.columns, table.facts)


def as_frame(table: Table, ordered: Table, folds: list[np.ndarray]) -> pd.DataFrame:
    """Name the folds, and put their rows, which are in the order of `ordered`, back into that of `table`."""
    parts = {f"fold_{number}": pd.Series(fold, dtype="str") for number, fold in enumerate(folds)}
    return pd.DataFrame(parts).set_axis(ordered.frame.index, axis=0).loc[table.frame.index]


def assigned(test: np.ndarray, valid: np.ndarray, unused: np.ndarray | None = None) -> np.ndarray:
    """Name the part of every row: `unused` counts before `test`, that before `valid`, and the rest is train."""
    parts = np.where(test, "test", np.where(valid, "valid", "train"))
    return parts if unused is None else np.where(unused, "unused", parts)


def without_leaks(parts: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Set training rows aside whose block also has test rows."""
    known = np.isin(blocks, blocks[parts == "test"]) & (parts != "test")
    return np.where(known, "unused", parts)


def draw_valid(groups: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the valid rows by group among the rows that are not `other`; none where these are of one group."""
    valid = np.zeros(len(groups), dtype=bool)
    inner = pd.factorize(groups[~other])[0]
    if len(inner) and inner.max() > 0:
        valid[~other] = draw(inner, VALID_SHARE, rng)
    return valid
