"""Many differences judged at once: p-values and bands that hold for all of them together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_EQUAL = 1e-9
"""A standard error of rounding size, relative to the difference: nothing moves."""


class Together(NamedTuple):
    """What is said of several differences: half-widths of bands that hold for all at once, p-values alone and adjusted.

    Shapes: (differences,) each.
    """

    half: np.ndarray
    p: np.ndarray
    adjusted: np.ndarray


def step_down(values: np.ndarray, draws: np.ndarray, error_rate: float) -> Together:
    """Judge several differences by the largest of their studentised bootstrap moves.

    p is two-sided, (1 + count) / (1 + B): how many of B resamples moved the difference about its value as far as it is
    from zero. It is adjusted by the step-down maximum: among the differences that are no larger, how often does the
    largest move of all reach it? The maximum needs no p-value below 1 / (1 + B), which Holm's method would with many
    differences, and it knows that differences on the same rows move together. The bands hold for all differences at
    once with the probability 1 - `error_rate`; they are those of the first step.
    A difference that is NaN, or has no finite draw, is NaN and does not count, and a resample in which another has no
    value is left out. A difference of zero that never moves has p-values of 1.
    Shapes: values (differences,), draws (differences, resamples).
    Source: Westfall and Young, 1993, Resampling-Based Multiple Testing, algorithm 2.8; Romano and Wolf, 2005,
    Econometrica 73(4); 2016, Stat. Probab. Lett. 113 (adjusted p-values).
    """
    found = Together(*(np.full(len(values), np.nan) for _ in Together._fields))
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(draws).any(axis=1))
    usable = np.isfinite(draws[known]).all(axis=0)
    if not len(known) or usable.sum() < 2:
        return found
    value = values[known]
    moved = draws[np.ix_(known, np.flatnonzero(usable))] - value[:, None]
    error = moved.std(axis=1, ddof=1)
    moves = error > _EQUAL * np.maximum(1.0, np.abs(value))
    scale = np.where(moves, error, 1.0)
    sizes = np.where(moves, np.abs(value) / scale, np.where(np.abs(value) > _EQUAL, np.inf, 0.0))
    drawn = np.where(moves[:, None], np.abs(moved) / scale[:, None], 0.0)
    found.half[known] = np.quantile(drawn.max(axis=0), 1 - error_rate) * np.where(moves, error, 0.0)
    found.p[known] = _share(drawn, sizes)
    order = np.argsort(-sizes, kind="stable")
    # each difference against the largest move among those that are no larger, p-values never falling
    largest = np.maximum.accumulate(drawn[order][::-1], axis=0)[::-1]
    found.adjusted[known[order]] = np.maximum.accumulate(_share(largest, sizes[order]))
    return found


def _share(drawn: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return (1 + how many draws reach the size) / (1 + draws). Shapes: (n, resamples), (n,) -> (n,)."""
    return np.asarray((1 + (drawn >= sizes[:, None]).sum(axis=1)) / (1 + drawn.shape[1]))
