"""Paired comparison of predictors, with p-values and bands that hold for several differences at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import percentile_interval
from perfcast.utils.errors import UserError

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


PAIR_METRICS = ("mae", "medae", "mape", "medape")
PAIR_COLUMNS = [
    *("split", "task", "metric", "predictor", "other", "difference", "low", "high"),
    *("band_low", "band_high", "p", "p_family", "claim"),
]
ERROR_RATE = 0.05
"""The probability, over all pairs of one split, task and metric together, of one false claim or more."""


def compare_all_pairs(
    split: str, task: str, results: Mapping[str, Mapping[str, Draws]], clusters: int
) -> list[dict[str, object]]:
    """Return the difference of every pair of predictors, and whether it is significant among all comparisons.

    `results` maps predictor -> metric -> (value, draws); the draws of all predictors come from the same resamples.
    One row per pair and metric, names in alphabetical order; a positive difference is a larger error of `predictor`.
    `low` and `high` are the 95 % interval of this pair alone and `p` its p-value. `band_low` and `band_high` hold for
    all pairs of one split, task and metric at once, and `p_family` is the p-value corrected for all of them
    (`step_down_test`); `claim` is better or worse where it is below 0.05, else undecided. Units: % points.
    """
    rows: list[dict[str, object]] = []
    for metric in _measured(PAIR_METRICS, results):
        pairs = list(combinations(sorted(results), 2))
        if not pairs:
            continue
        values = np.array([results[first][metric][0] - results[second][metric][0] for first, second in pairs])
        draws = np.array([results[first][metric][1] - results[second][metric][1] for first, second in pairs])
        bounds = [percentile_interval(difference_draws, clusters) for difference_draws in draws]
        # without an interval no difference is claimed
        tests = step_down_test(np.where(np.isfinite(bounds).all(axis=1), values, np.nan), draws, ERROR_RATE)
        for index, (first, second) in enumerate(pairs):
            value, half, p, corrected = values[index], *(column[index] for column in tests)
            claim = ("worse" if value > 0 else "better") if corrected < ERROR_RATE else "undecided"
            values_of_pair = (value, *bounds[index], value - half, value + half, p, corrected, claim)
            rows.append(dict(zip(PAIR_COLUMNS, (split, task, metric, first, second, *values_of_pair), strict=True)))
    return rows


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
