"""Robust fits of laws in one quantity: an accuracy that rises as a sigmoid, and a power whose exponent changes once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from perfcast.domains.scaling.predictors import robust_fit
from perfcast.domains.scaling.predictors.law_fit import (
    HUBER_DELTA,
    PowerSum,
    fit_power_sums,
)

ERROR_SCALE = 0.01
"""Error of a share above which the loss is linear: a point, about the noise of a repeated training."""
MIN_PAIRS = 4
"""Distinct values of the quantity that identify the slope and the middle."""

_SLOPES = np.geomspace(0.2, 20, 16)
"""Slopes to start from, over the spread of the quantity."""
_MIDDLES = np.linspace(-4, 8, 25)
"""Middles to start from: spreads ahead of the mean, in the direction in which the share rises."""
_LOWEST = np.array([np.log(0.02), -30.0])
_HIGHEST = np.array([np.log(60.0), 60.0])
"""Bounds of the logarithm of the slope and of the middle, in the same units."""
_STEEPEST = 50.0
"""Largest exponent."""
MIN_RUNS = 7
"""Distinct values of compute that identify five parameters."""
WIDTH = 0.5
"""Natural logarithm of compute over which the exponent changes: too few runs lie near a break to tell it."""

_PLACES = (0.25, 0.5, 0.75)
"""Quantiles of the compute at which a fit starts to look for the break."""
_EXPONENTS = ((1.0, 1.0), (1.6, 0.6), (0.6, 1.6))
"""Exponents before and after the break at the start, over that of the law without a break."""
_LOWEST_EXPONENT = 1e-3
_HIGHEST_EXPONENT = 2.0
_BROKEN_MARGIN = 5.0
"""Natural logarithm by which the constant or the factor may lie outside the values."""
SMALLEST = 1e-4


@dataclass(frozen=True)
class Sigmoid(robust_fit.Law):
    """share = chance + (1 - chance) / (1 + exp(-slope (x - middle))); `identified` is False for too few runs."""

    slope: float
    middle: float
    chance: float
    identified: bool = True

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """Return the share at values of the quantity. Shapes: (n,) -> (n,)."""
        score = np.clip(self.slope * (x - self.middle), -_STEEPEST, _STEEPEST)
        return np.asarray(self.chance + (1 - self.chance) / (1 + np.exp(-score)))


class SharesOfRuns(NamedTuple):
    """Values of the quantity (n,), shares of correct answers (n,), and the share of a random choice."""

    x: np.ndarray
    shares: np.ndarray
    chance: float


def fit_sigmoids(tasks: Sequence[SharesOfRuns], *, rising: bool) -> list[Sigmoid]:
    """Fit slope and middle to the shares of each of several tasks.

    The loss is soft L1 of the errors. A grid of starts is screened at once, and the best one is refined.

    Args:
        rising: Whether a share rises with x, as with compute; it falls with a loss.

    Source: least squares with a soft L1 loss after Branch, Coleman and Li, 1999, SIAM J. Sci. Comput. 21.
    """
    sign = 1.0 if rising else -1.0
    identified = [task for task in tasks if _is_identified(task.x)]
    fit = partial(_fit_sigmoid_batch, sign=sign)
    # the grid of starts is a factor of the memory
    fitted = iter(robust_fit.fit_in_batches(identified, lambda task: len(task.x) * len(_SLOPES), fit))
    return [next(fitted) if _is_identified(task.x) else _flat(task, sign) for task in tasks]


def _is_identified(x: np.ndarray) -> bool:
    return len(np.unique(x.round(6))) >= MIN_PAIRS and float(x.std()) > 0


def _fit_sigmoid_batch(tasks: Sequence[SharesOfRuns], sign: float) -> list[Sigmoid]:
    """Fit tasks with about the same number of runs."""
    centers = np.array([np.mean(task.x) for task in tasks])
    spreads = np.array([np.std(task.x) for task in tasks])
    scaled = robust_fit.padded(
        [sign * (task.x - center) / spread for task, center, spread in zip(tasks, centers, spreads, strict=True)],
    )
    shares = robust_fit.padded([task.shares for task in tasks])
    is_run = robust_fit.known_places([task.x for task in tasks])
    chance = np.array([task.chance for task in tasks])

    def model(theta: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope = np.exp(theta[:, :1])
        middle = theta[:, 1:]
        score = np.clip(slope * (scaled[chosen] - middle), -_STEEPEST, _STEEPEST)
        rate = 1 / (1 + np.exp(-score))
        above = 1 - chance[chosen, None]
        residuals = (chance[chosen, None] + above * rate - shares[chosen]) / ERROR_SCALE
        change = above * rate * (1 - rate) / ERROR_SCALE
        return residuals, np.stack([change * score, -change * slope], axis=2)

    starts = np.stack(np.meshgrid(np.log(_SLOPES), _MIDDLES, indexing="ij"), axis=-1).reshape(-1, 2)
    every = np.arange(len(tasks))
    screened = []
    for start in starts:
        residuals, _ = model(np.broadcast_to(start, (len(tasks), 2)), every)
        losses, _ = robust_fit.soft_l1(residuals)
        screened.append(np.where(is_run, losses, 0.0).sum(axis=1))
    best = starts[np.argmin(screened, axis=0)]
    bounds = (np.broadcast_to(_LOWEST, best.shape), np.broadcast_to(_HIGHEST, best.shape))
    theta, _ = robust_fit.minimize(model, best, bounds, is_run, robust_fit.soft_l1)
    slopes = sign * np.exp(theta[:, 0]) / spreads
    middles = centers + sign * theta[:, 1] * spreads
    return [
        Sigmoid(
            float(slopes[i]),
            float(middles[i]),
            task.chance,
        )
        for i, task in enumerate(tasks)
    ]


def _flat(task: SharesOfRuns, sign: float) -> Sigmoid:
    """Return a sigmoid through the mean of too few runs, with a slope of a tenth."""
    above = (task.shares.mean() - task.chance) / (1 - task.chance)
    share = float(np.clip(above, 1e-3, 1 - 1e-3))
    slope = 0.1 * sign
    middle = float(task.x.mean()) - float(np.log(share / (1 - share))) / slope
    return Sigmoid(slope, middle, task.chance, identified=False)


@dataclass(frozen=True)
class BrokenLaw(robust_fit.Law):
    """y = constant + factor exp(-before t - (after - before) w ln(1 + exp((t - place) / w))), t = ln C - center."""

    constant: float
    factor: float
    before: float
    after: float
    place: float
    center: float
    identified: bool = True

    def evaluate(self, log_compute: np.ndarray) -> np.ndarray:
        """Return the law at logarithms of compute. Shapes: (n,) -> (n,)."""
        t = log_compute - self.center
        turned = WIDTH * np.logaddexp(0, (t - self.place) / WIDTH)
        power = np.exp(-self.before * t - (self.after - self.before) * turned)
        return np.asarray(self.constant + self.factor * power)


def fit_broken_laws(run_sets: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[BrokenLaw]:
    """Fit a law to each of several sets of runs. Shapes: logarithms of compute (n,), positive values (n,), per set."""
    power_sums = fit_power_sums([(compute[:, None], values) for compute, values in run_sets])
    problems = []
    for (compute, values), power_sum in zip(run_sets, power_sums, strict=True):
        is_identified = power_sum.identified and len(np.unique(compute.round(6))) >= MIN_RUNS
        problems.append((compute, values, _without_break(power_sum, is_identified)))
    broken = [problem for problem in problems if problem[2].identified]
    starts = len(_PLACES) * len(_EXPONENTS)
    fitted = iter(robust_fit.fit_in_batches(broken, lambda problem: len(problem[0]) * starts, _fit_broken_batch))
    return [next(fitted) if curve.identified else curve for _, _, curve in problems]


def _without_break(power_sum: PowerSum, identified: bool) -> BrokenLaw:
    (exponent,) = power_sum.exponents
    return BrokenLaw(
        constant=power_sum.constant,
        factor=power_sum.factors[0],
        before=exponent,
        after=exponent,
        place=0.0,
        center=power_sum.centers[0],
        identified=identified,
    )


def _fit_broken_batch(
    problems: Sequence[tuple[np.ndarray, np.ndarray, BrokenLaw]],
) -> list[BrokenLaw]:
    """Fit laws with about the same number of runs, each from every start; the laws given are those without a break."""
    count = len(problems)
    curves = [curve for _, _, curve in problems]
    t = robust_fit.padded([compute - curve.center for compute, _, curve in problems])
    log_values = robust_fit.padded([np.log(values) for _, values, _ in problems])
    is_run = robust_fit.known_places([values for _, values, _ in problems])
    least = np.where(is_run, log_values, np.inf).min(axis=1)
    most = np.where(is_run, log_values, -np.inf).max(axis=1)
    floor = least + np.log(SMALLEST)

    # parameters are logarithms of constant and factor, the exponents, and the place of the break
    starts = list(product(_PLACES, _EXPONENTS))
    owners = np.repeat(np.arange(count), len(starts))
    theta = np.empty((len(owners), 5))
    for row, (owner, (quantile, (before, after))) in enumerate(zip(owners.tolist(), starts * count, strict=True)):
        curve = curves[owner]
        logs = np.log(np.maximum([curve.constant, curve.factor], 1e-300))
        theta[row, :2] = np.maximum(logs, floor[owner])
        theta[row, 2] = curve.before * before
        theta[row, 3] = curve.before * after
        theta[row, 4] = np.quantile(t[owner][is_run[owner]], quantile)

    def model(theta: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = t[owners[chosen]]
        constant, factor, before, after, place = (theta[:, number : number + 1] for number in range(5))
        turned = WIDTH * np.logaddexp(0, (x - place) / WIDTH)
        power = factor - before * x - (after - before) * turned
        total = np.logaddexp(constant, power)
        share = np.exp(power - total)
        beyond = 1 / (1 + np.exp(-np.clip((x - place) / WIDTH, -50, 50)))
        slopes = (
            1 - share,
            share,
            share * (turned - x),
            -share * turned,
            share * (after - before) * beyond,
        )
        residuals = (total - log_values[owners[chosen]]) / HUBER_DELTA
        return residuals, np.stack(slopes, axis=2) / HUBER_DELTA

    first = np.where(is_run, t, np.inf).min(axis=1)
    last = np.where(is_run, t, -np.inf).max(axis=1)
    smallest = np.full(count, _LOWEST_EXPONENT)
    largest = np.full(count, _HIGHEST_EXPONENT)
    lowest = np.column_stack(
        [
            floor - _BROKEN_MARGIN,
            floor - _BROKEN_MARGIN,
            smallest,
            smallest,
            first,
        ]
    )
    highest = np.column_stack(
        [
            most + _BROKEN_MARGIN,
            most + _BROKEN_MARGIN,
            largest,
            largest,
            last,
        ]
    )
    bounds = (lowest[owners], highest[owners])
    solved, losses = robust_fit.minimize(model, theta, bounds, is_run[owners], robust_fit.huber)

    best = losses.reshape(count, len(starts)).argmin(axis=1) + np.arange(count) * len(starts)
    solved = solved[best]
    solved[:, :2] = np.exp(solved[:, :2])
    fitted = []
    for (constant, factor, before, after, place), curve in zip(solved.tolist(), curves, strict=True):
        fitted.append(BrokenLaw(constant, factor, before, after, place, curve.center))
    return fitted
