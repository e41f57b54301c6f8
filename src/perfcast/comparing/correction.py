"""Differences of several predictors at once: p-values that hold for all of them together."""

from __future__ import annotations

import numpy as np


def step_down_max_t(differences: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return two-sided p-values of "no difference", adjusted for asking about several predictors at once.

    Studentised bootstrap with the step-down maximum: among the predictors not yet found to differ, how often does the
    largest of all centred resampled differences reach the observed one? Predictors judged on the same rows err
    together, and the maximum knows it; Holm's method does not and finds less.
    A difference that is NaN, or has no finite draw, is NaN and does not count; one that is zero in every resample is 1.
    Shapes: differences (predictors,), draws (predictors, resamples) -> (predictors,).
    Source: Westfall and Young (1993), Resampling-Based Multiple Testing, algorithm 2.8; Romano and Wolf (2005),
    J. Am. Stat. Assoc. 100.
    """
    adjusted = np.full(len(differences), np.nan)
    known = np.flatnonzero(np.isfinite(differences) & np.isfinite(draws).any(axis=1))
    if not len(known):
        return adjusted
    values, found = differences[known], draws[known]
    spread = np.nanstd(found, axis=1)
    moves = np.where(np.isfinite(found), np.abs(found - values[:, None]), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        reached = np.where(spread[:, None] > 0, moves / spread[:, None], 0.0)
        size = np.where(spread > 0, np.abs(values) / spread, np.where(values != 0, np.inf, 0.0))
    order = np.argsort(-size, kind="stable")
    # the maximum over a predictor and all with smaller differences
    highest = np.maximum.accumulate(reached[order][::-1], axis=0)[::-1]
    count = (highest >= size[order][:, None]).sum(axis=1)
    adjusted[known[order]] = np.maximum.accumulate((1 + count) / (1 + found.shape[1]))
    return adjusted
