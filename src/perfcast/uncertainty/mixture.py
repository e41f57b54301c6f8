"""Mixtures of the predictive distributions of several kinds of one machine: medians and quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

_STEPS = 40
"""Halvings of the search interval: the quantile is exact to 1e-12 of it."""


def weighted_medians(values: np.ndarray, owners: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted median of the values of every owner, (owners,).

    Half of the weight is on either side; between two values at exactly one half it is their mean.
    Shapes: values, owners and weights (k,); owners are numbered from 0, each has a value, weights sum to 1 per owner.
    """
    order = np.lexsort((values, owners))
    ordered = values[order]
    numbers = owners[order]
    sums = np.cumsum(weights[order])
    starts = np.searchsorted(numbers, np.arange(numbers[-1] + 1))
    before = np.concatenate([[0.0], sums])[starts][numbers]
    level = sums - before
    ends = np.append(starts[1:], len(numbers)) - 1
    low, high = (
        np.minimum(np.maximum.accumulate(_first_reaching(level, numbers, starts, 0.5 + shift)), ends)
        for shift in (-1e-9, 1e-9)
    )
    return np.asarray(np.where(low == high, ordered[low], (ordered[low] + ordered[high]) / 2))


def _first_reaching(level: np.ndarray, numbers: np.ndarray, starts: np.ndarray, share: float) -> np.ndarray:
    """Return the position of the first value of every owner whose cumulative weight reaches a share."""
    reached = level >= share
    positions = np.where(reached, np.arange(len(level)), len(level))
    return np.asarray(np.minimum.reduceat(positions, starts))


def mixture_quantiles(
    medians: np.ndarray,
    owners: np.ndarray,
    weights: np.ndarray,
    *,
    errors: np.ndarray,
    outputs: np.ndarray,
    scores: Mapping[str, Sequence[float]],
    levels: Sequence[float],
) -> np.ndarray:
    """Return quantiles of the mixture of every owner, (owners, levels).

    A component is symmetric about its median; its error is the expected one times a score, whose distribution has the
    quantiles `scores` at levels evenly from 0 to 1, by output ("": of all). Shapes: medians (natural logarithms),
    owners, weights, errors (in logarithms) and outputs (k,); owners are numbered from 0, weights sum to 1 per owner.
    """
    count = int(owners.max()) + 1
    widest = errors * max(max(values) for values in scores.values())
    low = np.full(count, np.inf)
    high = np.full(count, -np.inf)
    np.minimum.at(low, owners, medians - widest)
    np.maximum.at(high, owners, medians + widest)
    keys = [output if output in scores else "" for output in map(str, outputs)]
    parts = {key: np.flatnonzero(np.asarray(keys, dtype=object) == key) for key in dict.fromkeys(keys)}
    wanted = np.array(levels)
    below, above = (np.repeat(ends[:, None], len(levels), axis=1) for ends in (low, high))
    inside = np.empty((len(medians), len(levels)))
    shares = np.empty((count, len(levels)))
    curves = {key: (np.asarray(scores[key], dtype=float), np.linspace(0, 1, len(scores[key]))) for key in parts}
    for _ in range(_STEPS):
        middle = (below + above) / 2
        gaps = middle[owners] - medians[:, None]
        reached = np.abs(gaps) / errors[:, None]
        for key, rows in parts.items():
            inside[rows] = np.interp(reached[rows], *curves[key])
        probabilities = weights[:, None] * (0.5 + 0.5 * np.sign(gaps) * inside)
        for column in range(len(levels)):
            shares[:, column] = np.bincount(owners, probabilities[:, column], minlength=count)
        below = np.where(shares < wanted, middle, below)
        above = np.where(shares < wanted, above, middle)
    return np.asarray((below + above) / 2)
