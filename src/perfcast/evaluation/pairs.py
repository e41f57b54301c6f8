"""Every predictor of a split against every other, with errors of all the claims together held at 5 %."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from perfcast.evaluation.comparison import Draws
from perfcast.evaluation.metrics import interval

PAIR_METRICS = ("mape", "medape")
PAIR_COLUMNS = [
    *("split", "task", "metric", "predictor", "other", "difference", "low", "high"),
    *("band_low", "band_high", "p", "p_family", "claim"),
]
ERROR_RATE = 0.05
"""The probability, over all pairs of one split, task and metric together, of one false claim or more."""


def compare_all(
    split: str, task: str, results: Mapping[str, Mapping[str, Draws]], clusters: int
) -> list[dict[str, object]]:
    """Return the difference of every pair of predictors, and whether it is claimed among so many comparisons.

    `results` maps predictor -> metric -> (value, draws); the draws of all predictors come from the same resamples.
    One row per pair and metric, names in alphabetical order; a positive difference is a larger error of `predictor`.
    `low` and `high` are the 95 % interval of this pair alone and `p` its two-sided p-value, (1 + count) / (1 + B):
    how many of B resamples moved the difference about its value as far as it is from zero. `band_low` and `band_high`
    hold for all pairs of one split, task and metric at once, and `p_family` is the p-value corrected for all of them;
    `claim` is better or worse where it is below 0.05, else undecided. Units: % points.

    Why not Holm on `p`: with B resamples no p-value is below 1 / (1 + B), so Holm, which multiplies the smallest one by
    the number of pairs, could never claim anything of the 325 pairs of 26 predictors with B = 1000. The largest
    |difference| / (its bootstrap standard error) over all pairs, resample by resample, needs no small p-values, knows
    that pairs share predictors and rows, and holds the family-wise error rate too.
    Source: Romano and Wolf, 2005, Econometrica 73(4) (studentised step-down); 2016, Stat. Probab. Lett. 113
    (adjusted p-values); the bands are those of its first step.
    """
    rows: list[dict[str, object]] = []
    for metric in PAIR_METRICS:
        pairs = list(combinations(sorted(results), 2))
        if not pairs:
            continue
        values = np.array([results[one][metric][0] - results[other][metric][0] for one, other in pairs])
        draws = np.array([results[one][metric][1] - results[other][metric][1] for one, other in pairs])
        found = family(values, draws, clusters)
        for index, (one, other) in enumerate(pairs):
            low, high = interval(draws[index], clusters)
            told = (values[index], low, high, *(column[index] for column in found))
            corrected, difference = found[-1][index], values[index]
            claim = ("worse" if difference > 0 else "better") if corrected < ERROR_RATE else "undecided"
            rows.append(dict(zip(PAIR_COLUMNS, (split, task, metric, one, other, *told, claim), strict=True)))
    return rows


def family(
    values: np.ndarray, draws: np.ndarray, clusters: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return low and high of the simultaneous bands, the p-value of each difference, and the corrected one.

    Shapes: values (pairs,), draws (pairs, resamples) -> (pairs,) each. NaN where the data cannot say, as `interval`
    does; a pair that no resample tells apart has the p-value 1.
    """
    nothing = np.full(len(values), np.nan)
    known = np.isfinite(draws).all(axis=0) & np.isfinite(values).all()
    if clusters < 2 or known.sum() < max(2, 0.95 * len(known)):
        return nothing, nothing, nothing, nothing
    moved = draws[:, known] - values[:, None]
    error = moved.std(axis=1, ddof=1)
    # a standard error of rounding size: equal predictions
    told = error > 1e-9 * np.maximum(1.0, np.abs(values))
    scale = np.where(told, error, 1.0)
    sizes = np.where(told, np.abs(values) / scale, 0.0)
    drawn = np.where(told[:, None], np.abs(moved) / scale[:, None], 0.0)
    half = np.quantile(drawn.max(axis=0), 1 - ERROR_RATE) * np.where(told, error, 0.0)
    p = np.where(told, _share(drawn, sizes), 1.0)
    # step-down: each difference against the largest draw among those that are no larger, p-values never falling
    order = np.argsort(-sizes, kind="stable")
    largest = np.maximum.accumulate(drawn[order][::-1], axis=0)[::-1]
    stepped = np.maximum.accumulate(np.where(told[order], _share(largest, sizes[order]), 1.0))
    corrected = np.empty(len(values))
    corrected[order] = stepped
    return values - half, values + half, p, corrected


def _share(drawn: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return (1 + how many draws reach the size) / (1 + draws). Shapes: (pairs, resamples), (pairs,) -> (pairs,)."""
    return np.asarray((1 + (drawn >= sizes[:, None]).sum(axis=1)) / (1 + drawn.shape[1]))
