"""Paired comparison of predictors: differences on the same resamples of the same rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from perfcast.evaluation.metrics import interval

PAIRED_METRICS = ("mape", "medape", "p90")
PAIRED_COLUMNS = [
    "split",
    "task",
    "metric",
    "predictor",
    "against",
    "reference",
    "difference",
    "low",
    "high",
    "claim",
]
Draws = tuple[float, np.ndarray]


def compare(
    split: str, task: str, results: Mapping[str, Mapping[str, Draws]], clusters: int, baseline: str
) -> list[dict[str, object]]:
    """Return the difference of every predictor to the baseline and to the best predictor, with its interval.

    `results` maps predictor -> metric -> (value, draws); the draws of all predictors come from the same resamples.
    `claim` is better or worse when the interval of the difference excludes zero, otherwise undecided; a positive
    difference is a larger error. Units: % points.
    """
    rows = []
    for metric in PAIRED_METRICS:
        best = min(sorted(results), key=lambda name: results[name][metric][0])
        references = {"best": best} | ({"baseline": baseline} if baseline in results else {})
        for against, reference in references.items():
            other, other_draws = results[reference][metric]
            for predictor in sorted(results):
                if predictor == reference:
                    continue
                value, draws = results[predictor][metric]
                low, high = interval(draws - other_draws, clusters)
                claim = "better" if high < 0 else "worse" if low > 0 else "undecided"
                difference = value - other
                row = (split, task, metric, predictor, against, reference, difference, low, high, claim)
                rows.append(dict(zip(PAIRED_COLUMNS, row, strict=True)))
    return rows


def clear_winner(paired: pd.DataFrame, split: str, task: str, metric: str) -> str | None:
    """Return the predictor that is better than every other with an interval that excludes zero, if there is one."""
    rows = paired[
        (paired["split"] == split)
        & (paired["task"] == task)
        & (paired["metric"] == metric)
        & (paired["against"] == "best")
    ]
    if rows.empty or not (rows["claim"] == "worse").all():
        return None
    return str(rows["reference"].iloc[0])
