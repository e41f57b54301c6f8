"""Robust fit of y = E + A N^-a + B D^-b and of its special cases, from a grid of exponents.

For given exponents the law is linear in E, A and B. So a grid of exponents is screened with non-negative least squares
of relative errors, all of it at once. The best two starts are refined on the Huber loss of log errors.

Sources: Hoffmann et al., 2022, arXiv 2203.15556, approach 3 (law, Huber loss with delta 1e-3, grid of starts); variable
projection by Golub and Pereyra, 1973, SIAM J. Numer. Anal. 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations

import numpy as np

from perfcast.domains.scaling.predictors import robust_fit

PUBLISHED_EXPONENTS = (0.34, 0.28)
"""Exponents of parameters and tokens by Hoffmann et al., for a law that the runs do not identify."""
MIN_VALUES = 3
"""Distinct values of a quantity that identify its exponent beside the constant E."""
HUBER_DELTA = 1e-3
"""Log error above which the loss is linear."""

_EXPONENTS = np.geomspace(0.03, 1.5, 16)
_BOUNDS = (0.01, 2.5)
_APART = 0.4
"""Natural logarithm by which an exponent of the second start differs from that of the first."""
_NEAR = 1.1
"""Error of the second start, over that of the first, up to which it is refined too."""
_SMALLEST = 1e-4
"""Smallest share of a term at the start, in the smallest value: its logarithm must be finite."""
_MARGIN = 5.0
"""Natural logarithm by which a term may be below the smallest start, or above the largest value."""

Runs = tuple[np.ndarray, np.ndarray]
"""Logarithms of the quantities (n, quantities), and positive values (n,)."""


@dataclass(frozen=True)
class PowerSum(robust_fit.Law):
    """Fitted law y = constant + sum over quantities of factor x exp(-exponent (log x - center)).

    `identified` is False where the runs do not determine the exponents, which then are the published ones.
    """

    constant: float
    factors: tuple[float, ...]
    exponents: tuple[float, ...]
    centers: tuple[float, ...]
    identified: bool = True

    def evaluate(self, logs: np.ndarray) -> np.ndarray:
        """Return the law at logarithms of the quantities. Shapes: (n, quantities) -> (n,)."""
        total = np.full(len(logs), self.constant)
        for position, (factor, exponent) in enumerate(zip(self.factors, self.exponents, strict=True)):
            total = total + factor * np.exp(-exponent * (logs[:, position] - self.centers[position]))
        return total


def fit_power_sums(run_sets: Sequence[Runs], *, tied: bool = False) -> list[PowerSum]:
    """Fit a law to each of several sets of runs, all of them with the same quantities.

    Args:
        tied: One exponent for all quantities.
    """
    # accuracies that follow one loss fit the same runs several times
    keys = [(logs.tobytes(), values.tobytes()) for logs, values in run_sets]
    distinct = dict(zip(keys, run_sets, strict=True))
    fitted: dict[tuple[bytes, bytes], PowerSum] = {}
    for identified in (True, False):
        chosen = {key: runs for key, runs in distinct.items() if _is_identified(runs[0], tied) is identified}
        fit = partial(_fit_batch, tied=tied, identified=identified)
        power_sums = robust_fit.fit_in_batches(list(chosen.values()), lambda runs: len(runs[1]), fit)
        fitted |= zip(chosen, power_sums, strict=True)
    return [fitted[key] for key in keys]


def _is_identified(logs: np.ndarray, tied: bool) -> bool:
    """Return whether there are enough different runs for every exponent."""
    count = logs.shape[1]
    free = 1 + count + (1 if tied else count)
    enough = all(len(np.unique(column.round(2))) >= MIN_VALUES for column in logs.T)
    return enough and len(np.unique(logs.round(6), axis=0)) > free


def _fit_batch(run_sets: Sequence[Runs], *, tied: bool, identified: bool) -> list[PowerSum]:
    """Fit laws with about the same number of runs."""
    count = run_sets[0][0].shape[1]
    centers = np.stack([logs.mean(axis=0) for logs, _ in run_sets])
    centered = robust_fit.padded([logs - center for (logs, _), center in zip(run_sets, centers, strict=True)])
    values = robust_fit.padded([values for _, values in run_sets], 1.0)
    is_run = robust_fit.known_places([values for _, values in run_sets])

    if identified:
        grid, places = _exponent_grid(count, tied)
    else:
        grid = np.array(PUBLISHED_EXPONENTS)
        places = np.arange(count)[None]
    coefficients, errors = _solve(centered, values, is_run, grid, places)
    exponents = grid[places]

    # one or two starts of each law, refined together; `owners` are the laws of the starts
    starts = [(number, start) for number in range(len(run_sets)) for start in _choose_starts(exponents, errors[number])]
    owners, chosen = np.array(starts).T
    refined = coefficients[owners, chosen]
    losses = errors[owners, chosen]
    powers = exponents[chosen]
    if identified:
        start = (refined, powers)
        refined, powers, losses = _refine(centered[owners], values[owners], is_run[owners], start, tied=tied)

    power_sums = []
    for number, center in enumerate(centers):
        of_law = np.flatnonzero(owners == number)
        best = min(of_law, key=lambda place: losses[place])
        power_sum = PowerSum(
            constant=float(refined[best, 0]),
            factors=tuple(refined[best, 1:].tolist()),
            exponents=tuple(powers[best].tolist()),
            centers=tuple(center.tolist()),
            identified=identified,
        )
        power_sums.append(power_sum)
    return power_sums


@cache
def _exponent_grid(count: int, tied: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the exponents, (k,), and every combination of their places, (combinations, quantities)."""
    places = np.arange(len(_EXPONENTS))
    if tied:
        return _EXPONENTS, np.repeat(places[:, None], count, axis=1)
    return _EXPONENTS, np.stack(np.meshgrid(*[places] * count, indexing="ij"), axis=-1).reshape(-1, count)


def _solve(
    centered: np.ndarray,
    values: np.ndarray,
    is_run: np.ndarray,
    grid: np.ndarray,
    places: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the non-negative coefficients of least relative error for each combination of exponents, and its square.

    With so few terms every subset of them is solved, and the best one without a negative coefficient is kept. Sums of
    products over the runs are needed for pairs of exponents only, not for all combinations.
    Shapes: centered (g, n, quantities), values and is_run (g, n), grid (k,), places (c, quantities) ->
    (g, c, 1 + quantities), (g, c).
    """
    count = centered.shape[2]
    inverse = np.where(is_run, 1 / values, 0.0)
    terms = [np.exp(-grid[None, :, None] * centered[:, None, :, position]) for position in range(count)]
    weighted = [term * inverse[:, None, :] for term in terms]
    size = 1 + count
    gram = np.empty((len(values), len(places), size, size))
    moments = np.empty((len(values), len(places), size))
    gram[:, :, 0, 0] = (inverse**2).sum(axis=1)[:, None]
    moments[:, :, 0] = inverse.sum(axis=1)[:, None]
    for first in range(count):
        column = places[:, first]
        with_constant = (weighted[first] @ inverse[:, :, None])[:, column, 0]
        gram[:, :, 0, 1 + first] = with_constant
        gram[:, :, 1 + first, 0] = with_constant
        moments[:, :, 1 + first] = weighted[first].sum(axis=2)[:, column]
        for second in range(count):
            products = weighted[first] @ weighted[second].transpose(0, 2, 1)
            gram[:, :, 1 + first, 1 + second] = products[:, column, places[:, second]]
    return _solve_subsets(gram, moments, is_run.sum(axis=1))


def _solve_subsets(gram: np.ndarray, moments: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the non-negative solution of least error over all subsets of the terms, and that error."""
    size = gram.shape[-1]
    best = np.zeros(moments.shape)
    errors = np.full(moments.shape[:2], np.inf)
    for width in range(1, size + 1):
        for subset in combinations(range(size), width):
            chosen = list(subset)
            inner = gram[..., chosen, :][..., chosen]
            right = moments[..., chosen]
            trace = np.trace(inner, axis1=2, axis2=3)[..., None, None]
            ridge = 1e-12 * trace * np.eye(width)
            solution = np.linalg.solve(inner + ridge, right[..., None])[..., 0]
            error = runs[:, None] - (solution * right).sum(axis=2)
            better = (solution >= 0).all(axis=2) & (error < errors)
            errors = np.where(better, error, errors)
            filled = np.zeros_like(best)
            filled[..., chosen] = solution
            best = np.where(better[..., None], filled, best)
    return best, errors


def _choose_starts(exponents: np.ndarray, errors: np.ndarray) -> list[int]:
    """Return the combination of least error, and the best one far from it, if any."""
    first = int(np.argmin(errors))
    far = np.abs(np.log(exponents / exponents[first])).max(axis=1) > _APART
    second = int(np.argmin(np.where(far, errors, np.inf)))
    if far[second] and errors[second] <= _NEAR * errors[first]:
        return [first, second]
    return [first]


def _refine(
    centered: np.ndarray,
    values: np.ndarray,
    is_run: np.ndarray,
    start: tuple[np.ndarray, np.ndarray],
    *,
    tied: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coefficients, exponents and Huber loss of the log errors, minimized from the given start of each law."""
    coefficients, exponents = start
    count = centered.shape[2]
    free = 1 if tied else count
    log_values = np.log(values)
    least = np.log(np.where(is_run, values, np.inf).min(axis=1))[:, None]
    most = np.log(np.where(is_run, values, 0.0).max(axis=1))[:, None]
    lowest = least + np.log(_SMALLEST)
    # parameters are logarithms of E, A and B, then the exponents
    first = np.maximum(np.log(np.maximum(coefficients, 1e-300)), lowest)
    begin = np.concatenate([first, exponents[:, :free]], axis=1)

    def model(theta: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = centered[chosen]
        powers = theta[:, None, 1 + count :]  # one exponent is the same for all quantities
        constant = np.broadcast_to(theta[:, None, :1], (*x.shape[:2], 1))
        terms = theta[:, None, 1 : 1 + count] - powers * x
        parts = np.concatenate([constant, terms], axis=2)
        highest = parts.max(axis=2, keepdims=True)
        shares = np.exp(parts - highest)
        total = shares.sum(axis=2, keepdims=True)
        shares /= total
        residuals = ((np.log(total) + highest)[:, :, 0] - log_values[chosen]) / HUBER_DELTA
        slopes = -shares[:, :, 1:] * x
        if tied:
            slopes = slopes.sum(axis=2, keepdims=True)
        return residuals, np.concatenate([shares, slopes], axis=2) / HUBER_DELTA

    def bound(ends: np.ndarray, power: float) -> np.ndarray:
        return np.concatenate(
            [np.repeat(ends, 1 + count, axis=1), np.full((len(values), free), power)],
            axis=1,
        )

    bounds = (bound(lowest - _MARGIN, _BOUNDS[0]), bound(most + _MARGIN, _BOUNDS[1]))
    theta, losses = robust_fit.minimize(model, begin, bounds, is_run, robust_fit.huber)
    powers = np.repeat(theta[:, -1:], count, axis=1) if tied else theta[:, 1 + count :]
    return np.exp(theta[:, : 1 + count]), powers, losses
