"""Metrics of one predictor on one task, with a bootstrap over clusters, and the comparison of predictors by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import interval_width
from perfcast.features.feature_math import round_digits
from perfcast.utils.errors import UserError

_RANKED_DIGITS = 8
"""Significant digits of predictions in rank metrics."""


def spearman(measured: np.ndarray, predicted: np.ndarray) -> tuple[float, np.ndarray]:
    """Return Spearman's rank correlation and each row's influence on it, which has mean zero.

    The influence function is that of Croux and Dehon, "Influence functions of the Spearman and Kendall correlation
    measures" (2010), at the empirical distribution, with midranks for ties. Shapes: (n,), (n,) -> scalar, (n,).
    """
    size = len(measured)
    u, v = ((pd.Series(values).rank().to_numpy() - 0.5) / size for values in (measured, predicted))
    scale = float(np.sqrt(u.var() * v.var())) if size else 0.0
    if scale == 0:
        return np.nan, np.zeros(size)
    value = float(((u - 0.5) * (v - 0.5)).mean() / scale)
    influence = (u * v + _mean_above(measured, v) + _mean_above(predicted, u)) / scale
    return value, influence - influence.mean()


def ordered_pairs(measured: np.ndarray, predicted: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the share of pairs put in the measured order and each row's influence on it, which has mean zero.

    Pairs of equal measurements do not count; a pair of equal predictions counts half. The influence is the first-order
    (Hajek) projection of this U-statistic. Shapes: (n,), (n,) -> scalar, (n,).
    """
    size = len(measured)
    x = _dense(measured)
    y = _dense(predicted)
    right = _dominated(x, y) + _dominated(-x + x.max(initial=0), -y + y.max(initial=0))
    equal_x = _count_equal(x)
    equal_y = _count_equal(y)
    equal_both = _count_equal(x * (y.max(initial=0) + 1) + y)
    correct = right + 0.5 * (equal_y - equal_both)
    counted = size - equal_x
    total = float(counted.sum())
    if total == 0:
        return np.nan, np.zeros(size)
    share = float(correct.sum() / total)
    return share, 2 * size * (correct - share * counted) / total


def _mean_above(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For each row the sum of `values` over rows of larger key (equal keys count half), divided by n."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    sums = np.concatenate([[0.0], np.cumsum(values[order])])
    below = (sums[np.searchsorted(ordered, keys, "left")] + sums[np.searchsorted(ordered, keys, "right")]) / 2
    return np.asarray((sums[-1] - below) / len(keys))


def _dense(values: np.ndarray) -> np.ndarray:
    """Return dense ranks from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _count_equal(codes: np.ndarray) -> np.ndarray:
    """For each row the number of rows of the same code, itself included."""
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse])


def _dominated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For each row the number of rows with both a smaller x and a smaller y; ranks from 0.

    Rows are walked in the order of x, a block at a time: each row of a block is compared with the earlier ones of its
    block, and placed among all rows of earlier blocks.
    """
    order = np.lexsort((-y, x))
    counts = np.empty(len(y), dtype=np.int64)
    ranks = y[order]
    for start in range(0, len(y), _BLOCK):
        block = ranks[start : start + _BLOCK]
        inside = np.tril(block[None, :] < block[:, None], -1).sum(axis=1)
        counts[order[start : start + _BLOCK]] = inside + np.searchsorted(np.sort(ranks[:start]), block)
    return counts


_CELLS_AT_ONCE = 4_000_000
_BLOCK = 512
"""Rows that are compared with each other."""


@dataclass(frozen=True)
class Scored:
    """Measured and predicted scores of one task and one seed.

    Shapes: arrays of n rows. `target` and `cluster` are codes from 0; R2 and the rank metrics compare scores of
    one target only, since different targets may have different scales. `half` is the half-width of the interval in
    logarithms; NaN for any row: there are no intervals. `center` is the geometric middle of the interval, the
    prediction itself where it is None.
    `level` is that of the intervals. Scores that are shares have errors in points too.
    """

    measured: np.ndarray
    predicted: np.ndarray
    target: np.ndarray
    cluster: np.ndarray
    half: np.ndarray
    level: float
    are_shares: bool = False
    center: np.ndarray | None = None

    @property
    def errors(self) -> np.ndarray:
        """Absolute percentage errors, in % of the measured score."""
        return np.asarray(100 * np.abs(self.predicted - self.measured) / self.measured)

    @property
    def points(self) -> np.ndarray:
        """Absolute errors of shares, in percentage points."""
        return np.asarray(100 * np.abs(self.predicted - self.measured))


def score(scored: Scored, weights: np.ndarray) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Return every metric and its value in each bootstrap resample.

    The width is the median, because a few wide intervals would rule a mean. The interval score of Winkler, of intervals
    of log scores, is 100 x (width + 2 / (1 - level) x distance of the score from the interval), about %.
    Source: Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation" (2007), equation 43.

    `weights` counts how often each resample drew each cluster. Errors and R2 are recomputed on every resample; the rank
    metrics move by the first-order term of their influence functions, which agrees to O(1/n). A resample in which a
    task has no row is NaN. Shapes: weights (resamples, clusters) -> draws (resamples,) per metric.
    """
    center = scored.predicted if scored.center is None else scored.center
    outside = np.abs(np.log(center / scored.measured)) - scored.half
    width = interval_width(scored.half) * (center / scored.predicted)
    winkler = 100 * (2 * scored.half + 2 / (1 - scored.level) * np.maximum(outside, 0))
    inside = np.where(np.isnan(scored.half), np.nan, 100.0 * (outside <= 0))
    means = {"mape": scored.errors, "coverage": inside, "interval_score": winkler}
    quantiles = [(scored.errors, {"medape": 0.5, "p90": 0.9}), (width, {"width": 0.5})]
    if scored.are_shares:
        means["mae"] = scored.points
        quantiles.append((scored.points, {"medae": 0.5}))
    both = np.stack([scored.measured, scored.predicted])
    values: dict[str, float] = {}
    draws: dict[str, np.ndarray] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        totals = _totals(scored, weights, np.ones(len(inside)))
        for metric, amounts in means.items():
            values[metric] = float(amounts.mean())
            draws[metric] = _totals(scored, weights, amounts) / totals
        for amounts, shares in quantiles:
            values |= {metric: float(np.quantile(amounts, share)) for metric, share in shares.items()}
            draws |= _quantile_draws(amounts, scored.cluster, weights, shares)
        for metric, pair in (("r2", np.log(both)), ("r2_raw", both / scored.measured.mean())):
            values[metric], draws[metric] = explained_variance(scored, pair[0], pair[1], weights)
        for metric, statistic in (("spearman", spearman), ("pairs", ordered_pairs)):
            values[metric], influence = _by_target(scored, statistic)
            draws[metric] = values[metric] + _totals(scored, weights, influence) / totals
    return values, draws


def draw_weights(clusters: int, resamples: int, seed: int) -> np.ndarray:
    """Return how often each of `resamples` bootstrap resamples draws each cluster.

    Shapes: (resamples, clusters), every row sums to `clusters`.
    """
    shares = np.full(clusters, 1 / clusters)
    return np.random.default_rng(seed).multinomial(clusters, shares, size=resamples).astype(np.int32)


def percentile_interval(draws: np.ndarray, clusters: int) -> tuple[float, float]:
    """Return the 95 % percentile interval of bootstrap draws.

    NaN when there is one cluster only, or more than one in twenty resamples has no value.
    """
    finite = draws[np.isfinite(draws)]
    if clusters < 2 or len(finite) < 0.95 * len(draws) or len(finite) == 0:
        return np.nan, np.nan
    low, high = np.quantile(finite, [0.025, 0.975])
    return float(low), float(high)


def mean_of_finite(values: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis of the values that are not NaN; NaN where none is."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _totals(scored: Scored, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum `values` over the rows of every resample, through sums per cluster."""
    return np.asarray(weights @ np.bincount(scored.cluster, weights=values, minlength=weights.shape[1]))


def _quantile_draws(
    values: np.ndarray, cluster: np.ndarray, weights: np.ndarray, shares: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """Return weighted quantiles in every resample: the smallest value that reaches the share, NaN for any NaN."""
    draws = {metric: np.full(len(weights), np.nan) for metric in shares}
    if np.isnan(values).any():
        return draws
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    codes = cluster[order]
    totals = weights @ np.bincount(cluster, minlength=weights.shape[1])
    step = max(1, _CELLS_AT_ONCE // max(1, len(codes)))
    for start in range(0, len(weights), step):
        rows = slice(start, start + step)
        sums = np.cumsum(np.take(weights[rows], codes, axis=1), axis=1, dtype=np.int32)
        for metric, share in shares.items():
            places = np.count_nonzero(sums < (share * totals[rows])[:, None], axis=1)
            nearest = ordered[np.minimum(places, len(ordered) - 1)]
            draws[metric][rows] = np.where(totals[rows] > 0, nearest, np.nan)
    return draws


def explained_variance(
    scored: Scored, measured: np.ndarray, predicted: np.ndarray, weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return R2, about each target's own mean, of scores of magnitude 1 or of their logs, and its draws.

    NaN where all scores are equal.
    """
    squares = (predicted - measured) ** 2
    once = np.ones((1, weights.shape[1]), dtype=np.int32)
    both = np.concatenate([once, weights])
    spread = np.zeros(len(both))
    for code in np.unique(scored.target):
        member = (scored.target == code).astype(float)
        centerd = (measured - measured[scored.target == code].mean()) * member
        count = _totals(scored, both, member)
        sums = _totals(scored, both, centerd)
        spread += _totals(scored, both, centerd**2) - np.where(count > 0, sums**2 / np.maximum(count, 1), 0)
    # A spread of rounding size stands for "all scores are equal", of which R2 says nothing.
    with np.errstate(invalid="ignore", divide="ignore"):
        result = np.where(spread > 1e-12 * len(measured), 1 - _totals(scored, both, squares) / spread, np.nan)
    return float(result[0]), result[1:]


def _by_target(
    scored: Scored, statistic: Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]
) -> tuple[float, np.ndarray]:
    """Return a rank statistic averaged over targets by their rows, with the influence of every row.

    Predictions that only rounding tells apart are equal: their order would be that of the processor.
    """
    predicted = round_digits(scored.predicted, _RANKED_DIGITS)
    influence = np.zeros(len(scored.measured))
    total = 0.0
    rows = 0
    for code in np.unique(scored.target):
        member = scored.target == code
        value, moves = statistic(scored.measured[member], predicted[member])
        if np.isfinite(value):
            influence[member] = moves
            total += value * int(member.sum())
            rows += int(member.sum())
    return (total / rows if rows else np.nan), influence


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
