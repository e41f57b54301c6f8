"""Expected absolute error at distances from the training rows, fitted by likelihood to the residuals of backtests."""

from __future__ import annotations

import numpy as np
import pandas as pd

_MIN_BASE = 0.2
"""Least error at distance 0, as a share of the mean error. The likelihood alone trusts rows that repeat a training row
too much: shares of 0.02 to 0.45 were compared on forecasts before 2023."""

_CUT_QUANTILE = 0.99
"""Quantile at which residuals are cut off before their size is explained: a mistyped score explains nothing."""


def fit_expected_error(
    sizes: np.ndarray, distances: np.ndarray, share: np.ndarray, penalty: float
) -> tuple[float, np.ndarray]:
    """Return base and weights of the expected error, base + distances @ weights, none of them negative.

    They maximize the likelihood of errors with a Laplace distribution of that mean absolute size. Least squares of the
    sizes would be ruled by the largest errors; the likelihood compares each error with its expectation. `penalty` times
    the sum of (weight / mean error)^2 is added to the mean negative logarithm of the likelihood.
    Shapes: sizes (n,) absolute residuals; distances (n, names); share (n,) weights of the rows -> weights (names,).
    """
    from scipy.optimize import minimize  # predictions, which import this module, need none of it

    share = share / share.sum()
    cut = np.minimum(sizes, np.quantile(sizes, _CUT_QUANTILE))
    mean = max(float(share @ cut), 1e-9)
    cut, names = cut / mean, distances.shape[1]
    explained = np.column_stack([np.ones(len(cut)), distances])

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        expected, weights = explained @ values, values[1:]
        gradient = explained.T @ (share * (1 / expected - cut / expected**2))
        gradient[1:] += 2 * penalty * weights
        return float(share @ (np.log(expected) + cut / expected) + penalty * weights @ weights), gradient

    start = np.append(0.5, np.full(names, 0.5 / max(names, 1)))
    bounds = [(_MIN_BASE, None), *[(0.0, None)] * names]
    values = mean * minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(values[0]), values[1:]


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
