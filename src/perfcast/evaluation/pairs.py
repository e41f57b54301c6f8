"""Every predictor of a split against every other, with errors of all the claims together held at 5 %."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from perfcast.evaluation.comparison import Draws
from perfcast.evaluation.metrics import interval
from perfcast.evaluation.step_down import step_down

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
    `low` and `high` are the 95 % interval of this pair alone and `p` its p-value. `band_low` and `band_high` hold for
    all pairs of one split, task and metric at once, and `p_family` is the p-value corrected for all of them
    (`step_down`); `claim` is better or worse where it is below 0.05, else undecided. Units: % points.
    """
    rows: list[dict[str, object]] = []
    for metric in PAIR_METRICS:
        pairs = list(combinations(sorted(results), 2))
        if not pairs:
            continue
        values = np.array([results[one][metric][0] - results[other][metric][0] for one, other in pairs])
        draws = np.array([results[one][metric][1] - results[other][metric][1] for one, other in pairs])
        bounds = [interval(one, clusters) for one in draws]
        # where no interval can be told, nothing can be claimed either
        judged = step_down(np.where(np.isfinite(bounds).all(axis=1), values, np.nan), draws, ERROR_RATE)
        for index, (one, other) in enumerate(pairs):
            value, half, p, corrected = values[index], *(column[index] for column in judged)
            claim = ("worse" if value > 0 else "better") if corrected < ERROR_RATE else "undecided"
            told = (value, *bounds[index], value - half, value + half, p, corrected, claim)
            rows.append(dict(zip(PAIR_COLUMNS, (split, task, metric, one, other, *told), strict=True)))
    return rows
