"""Number of independent scores that scores of alike units are worth, and which rows are alike."""

from __future__ import annotations

import numpy as np
import pandas as pd


def units_of_error(entities: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return labels of rows that err alike: the entity, or the block where all rows are of one entity, (n,)."""
    return entities if len(pd.unique(entities)) > 1 else blocks


def independent_count(scores: np.ndarray, entities: np.ndarray) -> float:
    """Return how many independent scores have the information of scores that are alike within an entity.

    It is n / (1 + (m - 1) rho), with m the mean size of the entity of a score and rho the intraclass correlation of
    the ranks of the scores, by a one-way analysis of variance; at least the number of entities. One entity cannot show
    how entities differ: all its scores count.
    Shapes: scores and entities (n,).
    Source: design effect (Kish, 1965, Survey Sampling, section 5.4); intraclass correlation of unequal groups
    (Donner, 1986, International Statistical Review 54).
    """
    codes, names = pd.factorize(entities)
    count, groups = len(scores), len(names)
    if not 1 < groups < count:
        return float(count)
    ranks = pd.Series(scores).rank().to_numpy()
    sizes = np.bincount(codes)
    means = np.bincount(codes, ranks) / sizes
    between = sizes @ (means - ranks.mean()) ** 2 / (groups - 1)
    within = ((ranks - means[codes]) ** 2).sum() / (count - groups)
    per_group = (count - sizes @ sizes / count) / (groups - 1)
    total = between + (per_group - 1) * within
    correlation = float(np.clip((between - within) / total, 0, 1)) if total > 0 else 0.0
    alike = sizes @ sizes / count
    return max(float(groups), float(count / (1 + (alike - 1) * correlation)))
