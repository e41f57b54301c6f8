"""Groups of rows: equal values, connected components, random draws of whole groups.

Shapes: a grouping is an integer array with one group number, 0 .. groups - 1, per row.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from perfcast.schema.sequences import comparable
from perfcast.schema.table import Role, Table, Tag
from perfcast.utils.errors import UserError


def by_values(frame: pd.DataFrame, names: Iterable[str]) -> np.ndarray:
    """Group the rows that are equal in every named column; missing values are equal, and without names all rows are.

    Exact (no hashing), and linear in rows x columns: the number of groups so far times the values of one more column
    stays far below 2^63.
    """
    groups = np.zeros(len(frame), dtype=np.int64)
    for _, column in comparable(frame, names).items():
        codes, values = pd.factorize(column, use_na_sentinel=False)
        groups = _numbered(groups * max(len(values), 1) + codes)
    return groups


def by_tag(table: Table, tag: Tag) -> np.ndarray:
    """Group the rows that are equal in every column with `tag`; one row per group where no column has it."""
    names = table.select(tag=tag)
    return by_values(table.frame, names) if names else np.arange(len(table.frame))


def by_features(table: Table) -> np.ndarray:
    """Group the rows that are equal in every feature, which no predictor can separate."""
    return by_values(table.frame, table.select(role=Role.FEATURE))


def connected(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Group the rows that are linked, over any number of steps, by sharing a group of `first` or of `second`."""
    if len(first) == 0:
        return first
    left = int(first.max()) + 1
    right = int(second.max()) + 1
    from scipy.sparse import coo_matrix  # trainings, which import this module, need none of it
    from scipy.sparse.csgraph import connected_components

    links = coo_matrix((np.ones(len(first), dtype=np.int8), (first, left + second)), shape=(left + right, left + right))
    _, component = connected_components(links, directed=False)
    return _numbered(component[first])


def draw(groups: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Draw whole groups at random until they hold `share` of the rows, never more; the smallest when none fits.

    Shapes: a boolean array over the rows. A draw always leaves at least one group out.
    Raises: UserError when there are fewer than two groups.
    """
    sizes = np.bincount(groups)
    if len(sizes) < 2:
        raise UserError("a split must have at least two groups of rows", f"the table has {len(sizes)}", "add results")
    limit = share * len(groups)
    drawn = np.zeros(len(sizes), dtype=bool)
    total = 0
    for group in rng.permutation(len(sizes)):
        if total + sizes[group] <= limit:
            drawn[group] = True
            total += sizes[group]
    if not drawn.any():
        drawn[np.argmin(sizes)] = True
    return np.asarray(drawn[groups])


def balanced_folds(groups: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Deal whole groups to folds of nearly equal rows: largest first, each to the fold with the fewest rows.

    Shapes: one fold number per row. Groups of one size are dealt in random order.
    """
    sizes = np.bincount(groups)
    shuffled = rng.permutation(len(sizes))
    dealt = np.zeros(len(sizes), dtype=np.int64)
    totals = np.zeros(folds, dtype=np.int64)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        dealt[group] = np.argmin(totals)
        totals[dealt[group]] += sizes[group]
    return np.asarray(dealt[groups])


def _numbered(keys: np.ndarray) -> np.ndarray:
    return np.asarray(pd.factorize(keys)[0])
