"""Tests of several differences at once: adjusted p-values, and bands that hold for all of them together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_EQUAL = 1e-9
"""A standard error of rounding size, relative to the difference, which counts as zero."""


class StepDownResult(NamedTuple):
    """Result for several differences: half-widths of bands that hold for all at once, p-values alone and adjusted.

    Shapes: (differences,) each.
    """

    half: np.ndarray
    p: np.ndarray
    adjusted: np.ndarray


def step_down_test(values: np.ndarray, draws: np.ndarray, error_rate: float) -> StepDownResult:
    """Test several differences by the largest of their studentized bootstrap moves.

    p is two-sided, (1 + count) / (1 + B), where count is the number of the B resamples that move the difference by at
    least its size. The adjusted p-value compares each difference with the largest move among all differences that are
    no larger (step-down maximum). It accounts for the correlation of differences on the same rows. Unlike Holm's
    method, it needs no p-value below 1 / (1 + B). The bands of the first step hold for all differences at once with the
    probability 1 - `error_rate`.
    A difference that is NaN, or has no finite draw, is NaN and does not count. A resample in which another difference
    has no value is left out. A difference of zero that never moves has p-values of 1.
    Shapes: values (differences,), draws (differences, resamples).
    Source: Westfall and Young, 1993, Resampling-Based Multiple Testing, algorithm 2.8; Romano and Wolf, 2005,
    Econometrica 73(4); 2016, Stat. Probab. Lett. 113 (adjusted p-values).
    """
    result = StepDownResult(*(np.full(len(values), np.nan) for _ in StepDownResult._fields))
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(draws).any(axis=1))
    usable = np.isfinite(draws[known]).all(axis=0)
    if not len(known) or usable.sum() < 2:
        return result
    value = values[known]
    moved = draws[np.ix_(known, np.flatnonzero(usable))] - value[:, None]
    error = moved.std(axis=1, ddof=1)
    moves = error > _EQUAL * np.maximum(1.0, np.abs(value))
    scale = np.where(moves, error, 1.0)
    sizes = np.where(moves, np.abs(value) / scale, np.where(np.abs(value) > _EQUAL, np.inf, 0.0))
    drawn = np.where(moves[:, None], np.abs(moved) / scale[:, None], 0.0)
    result.half[known] = np.quantile(drawn.max(axis=0), 1 - error_rate) * np.where(moves, error, 0.0)
    result.p[known] = _share(drawn, sizes)
    order = np.argsort(-sizes, kind="stable")
    # each difference against the largest move among those that are no larger, p-values never falling
    largest = np.maximum.accumulate(drawn[order][::-1], axis=0)[::-1]
    result.adjusted[known[order]] = np.maximum.accumulate(_share(largest, sizes[order]))
    return result


def _share(drawn: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return (1 + how many draws reach the size) / (1 + draws). Shapes: (n, resamples), (n,) -> (n,)."""
    return np.asarray((1 + (drawn >= sizes[:, None]).sum(axis=1)) / (1 + drawn.shape[1]))
