"""Rank statistics with the influence of every row on them, in O(n log n)."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata


def spearman(measured: np.ndarray, predicted: np.ndarray) -> tuple[float, np.ndarray]:
    """Return Spearman's rank correlation and each row's influence on it, which has mean zero.

    The influence function is that of Croux and Dehon, "Influence functions of the Spearman and Kendall correlation
    measures" (2010), at the empirical distribution, with midranks for ties. Shapes: (n,), (n,) -> scalar, (n,).
    """
    size = len(measured)
    u, v = (rankdata(measured) - 0.5) / size, (rankdata(predicted) - 0.5) / size
    scale = float(np.sqrt(u.var() * v.var())) if size else 0.0
    if scale == 0:
        return np.nan, np.zeros(size)
    value = float(((u - 0.5) * (v - 0.5)).mean() / scale)
    influence = (u * v + _mean_above(measured, v) + _mean_above(predicted, u)) / scale
    return value, influence - influence.mean()


def ordered_pairs(measured: np.ndarray, predicted: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the share of pairs put in the measured order and each row's influence on it, which has mean zero.

    Pairs of equal measurements do not count; a pair of equal predictions counts half. The influence is the first-order
    (Hajek) projection of this U-statistic. Shapes: (n,), (n,) -> scalar, (n,).
    """
    size = len(measured)
    x, y = _dense(measured), _dense(predicted)
    right = _dominated(x, y) + _dominated(-x + x.max(initial=0), -y + y.max(initial=0))
    equal_x, equal_y = _count_equal(x), _count_equal(y)
    equal_both = _count_equal(x * (y.max(initial=0) + 1) + y)
    correct = right + 0.5 * (equal_y - equal_both)
    counted = size - equal_x
    total = float(counted.sum())
    if total == 0:
        return np.nan, np.zeros(size)
    share = float(correct.sum() / total)
    return share, 2 * size * (correct - share * counted) / total


def _mean_above(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For each row the sum of `values` over rows of larger key (equal keys count half), divided by n."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    sums = np.concatenate([[0.0], np.cumsum(values[order])])
    below = (sums[np.searchsorted(ordered, keys, "left")] + sums[np.searchsorted(ordered, keys, "right")]) / 2
    return np.asarray((sums[-1] - below) / len(keys))


def _dense(values: np.ndarray) -> np.ndarray:
    """Return dense ranks from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _count_equal(codes: np.ndarray) -> np.ndarray:
    """For each row the number of rows of the same code, itself included."""
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse])


def _dominated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For each row the number of rows with both a smaller x and a smaller y; ranks from 0.

    Rows are walked in the order of x. Two different y agree down to one bit, where the larger has 1: at each bit,
    within rows that agree on all higher bits, every row with 1 counts the rows with 0 before it.
    """
    order = np.lexsort((-y, x))
    ranks = y[order]
    counts = np.zeros(len(y), dtype=np.int64)
    for bit in reversed(range(int(y.max(initial=0)).bit_length())):
        prefix = ranks >> (bit + 1)
        walk = np.argsort(prefix, kind="stable")
        zeros = ((ranks[walk] >> bit) & 1) == 0
        before = np.cumsum(zeros)
        starts = np.searchsorted(prefix[walk], prefix[walk], "left")
        seen = before - np.concatenate([[0], before])[starts]
        counts[walk] += np.where(zeros, 0, seen)
    result = np.empty_like(counts)
    result[order] = counts
    return result
