"""Paired comparison of predictors, and the choice of a champion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import percentile_interval
from perfcast.utils.errors import UserError

PAIRED_METRICS = ("mae", "medae", "mape", "medape", "p90")
"""Metrics that have differences, where the results have them."""
PAIRED_COLUMNS = ["split", "task", "metric", "predictor", "against", "reference", "difference", "low", "high", "claim"]
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
    for metric in _measured(PAIRED_METRICS, results):
        best = min(sorted(results), key=lambda name: results[name][metric][0])
        references = {"best": best} | ({"baseline": baseline} if baseline in results else {})
        for against, reference in references.items():
            other, other_draws = results[reference][metric]
            for predictor in sorted(results):
                if predictor == reference:
                    continue
                value, draws = results[predictor][metric]
                low, high = percentile_interval(draws - other_draws, clusters)
                claim = "better" if high < 0 else "worse" if low > 0 else "undecided"
                difference = value - other
                row = (split, task, metric, predictor, against, reference, difference, low, high, claim)
                rows.append(dict(zip(PAIRED_COLUMNS, row, strict=True)))
    return rows


def _measured(metrics: Sequence[str], results: Mapping[str, Mapping[str, Draws]]) -> list[str]:
    return [metric for metric in metrics if all(metric in by_metric for by_metric in results.values())]


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


def choose_champion(inner: pd.DataFrame) -> str:
    """Return the predictor with the smallest geometric mean of the inner validation error over the splits.

    `inner` has the columns split, predictor and error, measured inside the training parts. The
    geometric mean weighs relative gains alike on easy and on hard splits. Only predictors with an error on every split
    compete; ties go to the first name. Raises: UserError when there is no such predictor.
    """
    errors = inner.pivot(index="predictor", columns="split", values="error").astype(float)
    complete = errors[(np.isfinite(errors) & (errors >= 0)).all(axis=1)]
    if complete.empty:
        raise UserError(
            "a champion must have an inner validation error on every split",
            f"none of {', '.join(map(str, errors.index)) or 'no predictors'} has",
            "train the predictors on all splits",
        )
    return str(np.log(complete.clip(lower=1e-9)).mean(axis=1).sort_index().idxmin())
