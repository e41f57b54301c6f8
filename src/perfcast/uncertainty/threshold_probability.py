"""Probability that a machine reaches a score, from the calibrated intervals of its task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def probability_at_least(
    threshold: float, median: float, high: float, level: float, quantiles: Sequence[float]
) -> float:
    """Return the probability that the measured score is at least the threshold.

    The error in logarithms is taken to be symmetric about the median, with the spread of the interval of `level` that
    ends at `high`, and spread otherwise as the scores of backtests are: `quantiles` of them at levels evenly from 0
    to 1 (`ConformalCalibration.quantiles`), interpolated. Past the largest but one of those levels the probability is
    constant: an error larger than those of all backtests is not impossible.
    Source: the predictive distribution of a conformal predictor (Vovk et al., 2019, Machine Learning 108), made
    symmetric, since calibration has the size of errors alone.
    """
    scores = np.asarray(quantiles, dtype=float)
    grid = np.linspace(0.0, 1.0, len(scores))
    expected_error = np.log(high / median) / np.interp(level, grid, scores)
    margin = np.log(median / threshold)
    within = _interval_level(abs(margin) / expected_error, scores, grid)
    return float(0.5 + 0.5 * np.sign(margin) * within)


def _interval_level(score: float, scores: np.ndarray, grid: np.ndarray) -> float:
    """Return the share of scores up to the given one, at most the largest level but one; none is below 0."""
    distinct, first = np.unique(scores, return_index=True)
    last = np.append(first[1:], len(scores)) - 1
    level = np.interp(score, np.append(-1e-300, distinct), np.append(0.0, grid[last]))
    return float(min(level, grid[-2]))


def joint_bounds(probabilities: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest probability that all of several events happen, whatever their dependence.

    Source: Fréchet's bounds (1935): max(0, sum - (n - 1)) and the smallest of them.
    """
    if not probabilities:
        return 1.0, 1.0
    return max(0.0, sum(probabilities) - (len(probabilities) - 1)), min(probabilities)
