"""Calibration of prediction intervals: coverage by level and score, PIT, worst slab, and a test of exchangeability."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import (
    IN_DOMAIN_SCORE,
    PIT,
    calibrate_folds,
    distance_names,
    interval_widths,
    is_covered,
)
from perfcast.uncertainty.conformal import TEST

PIT_COLUMNS = ["task", "from", "to", "share", "rows"]
CALIBRATION_COLUMNS = ["worst_slab_coverage", "log10_martingale", "alarm", "observations"]
"""`worst_slab_coverage` in %. Of forward splits alone: `log10_martingale`, the largest value of the martingale;
`alarm`, the month in which it first passed `ALARM`, "" for never; `observations`, the number of its bets."""

ALARM = 100.0
"""Value of the martingale that has the probability 1 % or less if errors are exchangeable with those of backtests."""

_BINS = np.linspace(0.0, 1.0, 11)
_DIRECTIONS = 100
_MIN_MASS = 0.2
"""Share of the rows that a slab must have at least."""
_EDGES = 21
_MAX_ROWS = 4000
"""Most rows that worst slabs are looked for in."""
_STEPS = np.array([-1.0, 0.0, 1.0])
_JUMP_RATE = 0.01


def signed_pit(predictions: pd.DataFrame) -> np.ndarray:
    """Return the probability integral transform of measured scores, 0 to 1, NaN without intervals, (n,).

    0.5 is a score as predicted, 1 one above all that is expected.
    """
    measured, predicted, levels = (predictions[name].to_numpy(dtype=float) for name in ("measured", "predicted", PIT))
    above = np.sign(measured - predicted)
    return np.asarray(0.5 + 0.5 * above * np.where(np.isnan(levels), np.nan, np.minimum(levels, 1.0)))


def pit_histogram(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the share of measured scores in tenths of the predictive distribution by task: columns PIT_COLUMNS.

    Each share is 0.1 for perfect predictive distributions. Seeds are pooled. Source: Gneiting, Balabdaoui and Raftery
    (2007), Journal of the Royal Statistical Society B 69.
    """
    pit = signed_pit(predictions)
    known = ~np.isnan(pit)
    rows: list[tuple[object, ...]] = []
    for task, places in predictions[known].groupby("task", sort=True).indices.items():
        values = pit[known][places]
        shares = np.histogram(values, _BINS)[0] / len(values)
        bins = zip(pairwise(_BINS), shares, strict=True)
        rows += [(str(task), low, high, share, len(values)) for (low, high), share in bins]
    return pd.DataFrame(rows, columns=PIT_COLUMNS)


def worst_slab_coverage(inside: np.ndarray, distances: np.ndarray, seed: int = 0) -> float:
    """Return the least coverage of any slab of the rows, NaN without rows.

    A slab holds the rows whose projection on a direction is between two values, a fifth of the rows at least. It is
    found on half of the rows, among random directions, and its coverage is that of the other half: the least of many
    coverages is too low by chance.
    Shapes: inside (n,) 1 or 0; distances (n, names), standardized here.
    Source: Cauchois, Gupta and Duchi (2021), Journal of Machine Learning Research 22(81).
    """
    if len(inside) < 2 * _EDGES:
        return float("nan")
    rng = np.random.default_rng(seed)
    varied = distances[:, np.ptp(distances, axis=0) > 0]
    if not varied.shape[1]:
        return float(inside.mean())
    scaled = (varied - varied.mean(axis=0)) / varied.std(axis=0)
    directions = np.vstack([np.eye(scaled.shape[1]), rng.standard_normal((_DIRECTIONS, scaled.shape[1]))])
    searched = rng.random(len(inside)) < 0.5
    worst, slab = np.inf, searched
    for direction in directions:
        along = scaled @ direction
        for low, high, coverage in _slabs(along[searched], inside[searched]):
            if coverage < worst:
                worst, slab = coverage, (along >= low) & (along <= high) & ~searched
    return float(inside[slab].mean()) if slab.any() else float("nan")


def _slabs(along: np.ndarray, inside: np.ndarray) -> list[tuple[float, float, float]]:
    """Return the ends and the coverage of the slab with the least coverage of one direction; none if all are small."""
    edges = np.unique(np.quantile(along, np.linspace(0, 1, _EDGES)))
    order = np.argsort(along, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(inside[order])])
    first, last = np.searchsorted(along[order], edges, "left"), np.searchsorted(along[order], edges, "right")
    count = last[None, :] - first[:, None]
    large = count >= _MIN_MASS * len(along)
    if not large.any():
        return []
    coverage = np.where(large, (sums[last][None, :] - sums[first][:, None]) / np.maximum(count, 1), np.inf)
    low, high = np.unravel_index(np.argmin(coverage), coverage.shape)
    return [(float(edges[low]), float(edges[high]), float(coverage[low, high]))]


def bet_on_exchangeability(reference: np.ndarray, scores: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return the martingale of scores that arrive one by one after reference scores, in decimal logarithms.

    Each score has the conformal p-value among the reference and the earlier ones, ties broken at random. The simple
    jumper bets that p-values are small, large, or neither, and moves a hundredth of its capital between the three. If
    all scores are exchangeable, the martingale passes 100 with a probability of 1 % or less (Ville's inequality).
    Shapes: reference (m,), scores (n,) -> (n,).
    Source: Vovk, Petej, Nouretdinov, Ahlberg, Carlsson and Gammerman, "Retrain or not retrain: conformal test
    martingales for change-point detection" (2021), Proceedings of Machine Learning Research 152.
    """
    rng = np.random.default_rng(seed)
    ordered = np.sort(reference)
    capital, log10, values = np.full(3, 1 / 3), 0.0, np.empty(len(scores))
    for place, value in enumerate(scores):
        low, high = np.searchsorted(ordered, value, "left"), np.searchsorted(ordered, value, "right")
        p = (len(ordered) - high + rng.random() * (high - low + 1)) / (len(ordered) + 1)
        capital = (1 - _JUMP_RATE) * capital + _JUMP_RATE * capital.sum() / 3
        capital = capital * (1 + _STEPS * (p - 0.5))
        log10 += float(np.log10(capital.sum()))
        capital = capital / capital.sum()
        values[place] = log10
        ordered = np.insert(ordered, low, value)
    return values


def calibration_checks(
    predictions: pd.DataFrame, backtests: pd.DataFrame | None, distances: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the worst-slab coverage and the test of exchangeability of one run: columns CALIBRATION_COLUMNS.

    Args: `predictions` as `with_intervals` returns them, the first seed counts; `distances` with a month by row in the
    column `month`, NaT where it is not known. No row without intervals.
    """
    known = predictions[predictions[PIT].notna()]
    if known.empty or backtests is None or distances is None:
        return pd.DataFrame(columns=CALIBRATION_COLUMNS)
    first = known[known["seed"] == known["seed"].min()]
    far = distances.drop(columns="month")
    tested = first.merge(distances[distances["backtest"] == TEST], on=["fold", "row"], suffixes=("", "_of_row"))
    drawn = tested.sample(min(len(tested), _MAX_ROWS), random_state=0)
    slab = 100 * worst_slab_coverage(is_covered(drawn), drawn[distance_names(far)].to_numpy(dtype=float))
    earlier = [rows for _, _, rows in calibrate_folds(backtests, far)]
    months = distances.drop_duplicates("row").set_index("row")["month"]
    reference = pd.concat(earlier).assign(month=lambda rows: months.loc[rows["row"]].to_numpy())
    largest, alarm, count = np.nan, "", 0
    if len(earlier) == 1 and reference["month"].max() < tested["month"].min():
        arrived = _by_entity(tested, []).sort_values("month", kind="stable")
        martingale = bet_on_exchangeability(
            _by_entity(reference, ["backtest"])[PIT].to_numpy(), arrived[PIT].to_numpy()
        )
        largest, count = max(martingale.max(initial=0.0), 0.0), len(arrived)
        for place in np.flatnonzero(martingale > np.log10(ALARM))[:1]:
            alarm = f"{arrived['month'].iloc[place]:%Y-%m}"
    return pd.DataFrame([(slab, largest, alarm, count)], columns=CALIBRATION_COLUMNS)


def _by_entity(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the median level and the first month by task and entity: repeated results are no independent evidence."""
    finite = rows.assign(**{PIT: rows[PIT].clip(upper=2.0)})
    return finite.groupby([*keys, "task", "entity"], sort=True).agg({PIT: "median", "month": "min"}).reset_index()


SUPPORT_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
IN_DOMAIN_COLUMNS = ["from", "to", "in_domain_score", "mape", "coverage", "width", "rows", "entities"]


def errors_by_in_domain_score(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return error, coverage and median width by in-domain score, tasks and seeds pooled: columns IN_DOMAIN_COLUMNS.

    Units: mape, coverage and width in %.
    """
    known = predictions[predictions[IN_DOMAIN_SCORE].notna()]
    error = 100 * (known["predicted"] / known["measured"] - 1).abs()
    errors = known.assign(mape=error, coverage=100 * is_covered(known), width=interval_widths(known))
    bins = pd.cut(errors[IN_DOMAIN_SCORE], SUPPORT_EDGES, include_lowest=True, labels=False)
    rows = []
    for bin_number, part in errors.groupby(bins, sort=True):
        edges = SUPPORT_EDGES[int(bin_number)], SUPPORT_EDGES[int(bin_number) + 1]
        means = part[[IN_DOMAIN_SCORE, "mape", "coverage"]].mean()
        counts = part["row"].nunique(), part["entity"].nunique()
        rows.append((*edges, *means, part["width"].median(), *counts))
    return pd.DataFrame(rows, columns=IN_DOMAIN_COLUMNS)


LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_ROUNDING = 1e-9
LEVEL_COLUMNS = ["level", "coverage", "rows"]


def coverage_by_level(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the share of measured scores inside intervals of LEVELS: columns LEVEL_COLUMNS; none without intervals.

    Averaged over tasks, as the metrics are; seeds pooled. Units: level and coverage in %.
    """
    known = predictions[predictions[PIT].notna()]
    rows = []
    for level in LEVELS if len(known) else ():
        inside = (known[PIT] <= level + _ROUNDING).groupby(known["task"]).mean()
        rows.append((100 * level, 100 * inside.mean(), known["row"].nunique()))
    return pd.DataFrame(rows, columns=LEVEL_COLUMNS)
