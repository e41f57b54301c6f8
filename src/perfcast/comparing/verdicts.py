"""Verdicts on differences of one metric of several predictors, drawn on the same resamples."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfcast.evaluation.metrics import interval
from perfcast.evaluation.step_down import step_down

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "no real change", "cannot tell"
MOVED, NARROWER, WIDER = "moved", "narrower", "wider"
"""Real, but neither better nor worse in itself: a coverage about as far from its level as before, a width."""
REAL = (WORSE, BETTER, MOVED, WIDER, NARROWER)
_LEVEL_OF_TEST = 0.05


def judge(
    metric: str,
    values: tuple[np.ndarray, np.ndarray],
    draws: tuple[np.ndarray, np.ndarray],
    levels: tuple[float, float],
    clusters: int,
) -> list[dict[str, Any]]:
    """Return one row per predictor: before, after, difference, low, high, p, verdict.

    A difference is real when its interval excludes zero and its p-value, adjusted for all predictors given, is below
    0.05. Errors are better when smaller, a coverage when nearer to its level. A resample without a value on either
    side is left out.
    Shapes: values (predictors,), draws (predictors, resamples) of either side. Units: % and percentage points.
    """
    differences, moves = values[1] - values[0], draws[1] - draws[0]
    real, p = _real(differences, moves, clusters)
    if metric == "coverage":
        sides = list(zip(values, draws, levels, strict=True))
        gaps = [np.abs(value - level) for value, _, level in sides]
        gap_draws = [np.abs(draw - level) for _, draw, level in sides]
        nearer, _ = _real(gaps[1] - gaps[0], gap_draws[1] - gap_draws[0], clusters)
        gains = gaps[1] - gaps[0]
    rows: list[dict[str, Any]] = []
    for index, difference in enumerate(differences):
        low, high = interval(moves[index], clusters)
        if not np.isfinite(low):
            verdict = UNKNOWN
        elif not real[index]:
            verdict = SAME
        elif metric == "width":
            verdict = WIDER if difference > 0 else NARROWER
        elif metric == "coverage":
            verdict = MOVED if not nearer[index] else WORSE if gains[index] > 0 else BETTER
        else:
            verdict = WORSE if difference > 0 else BETTER
        numbers = (values[0][index], values[1][index], difference, low, high, p[index])
        names = ("before", "after", "difference", "low", "high", "p")
        rows.append({**dict(zip(names, map(float, numbers), strict=True)), "verdict": verdict})
    return rows


def _real(differences: np.ndarray, draws: np.ndarray, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which differences are real, and their adjusted p-values."""
    bounds = np.array([interval(row, clusters) for row in draws])
    known = np.isfinite(bounds).all(axis=1)
    p = step_down(np.where(known, differences, np.nan), draws, _LEVEL_OF_TEST).adjusted
    with np.errstate(invalid="ignore"):
        excludes = (bounds[:, 0] > 0) | (bounds[:, 1] < 0)
        return known & excludes & (p <= _LEVEL_OF_TEST), p
