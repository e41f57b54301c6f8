"""Robust fit of y = E + A N^-a + B D^-b and of its special cases, from a grid of exponents.

For given exponents the law is linear in E, A and B. So a grid of exponents is screened with non-negative least squares
of relative errors, all of it at once. The best two starts are refined by L-BFGS on the Huber loss of log errors.

Sources: Hoffmann et al., 2022, arXiv 2203.15556, approach 3 (law, Huber loss with delta 1e-3, grid of starts); variable
projection by Golub and Pereyra, 1973, SIAM J. Numer. Anal. 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import Any

import numpy as np

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
_STOP = {"maxiter": 150, "ftol": 1e-6}
"""Steps of L-BFGS, and the relative change of the loss that ends it: the noise of a run is far above both."""
_REMEMBERED = 2048
"""Fits that are kept: laws of one ensemble, and accuracies that follow one loss, fit the same runs several times."""
_SMALLEST = 1e-4
"""Smallest share of a term at the start, in the smallest value: its logarithm must be finite."""


@dataclass(frozen=True)
class PowerSum:
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

    def to_state(self) -> dict[str, Any]:
        """Return the parameters as values of JSON."""
        return {
            **{"constant": self.constant, "factors": list(self.factors), "exponents": list(self.exponents)},
            **{"centers": list(self.centers), "identified": self.identified},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PowerSum:
        """Return the law of `to_state`."""
        vectors = {name: tuple(map(float, state[name])) for name in ("factors", "exponents", "centers")}
        return cls(constant=float(state["constant"]), identified=bool(state["identified"]), **vectors)


def fit_power_sum(logs: np.ndarray, values: np.ndarray, *, tied: bool = False) -> PowerSum:
    """Fit the law to runs.

    Args:
        tied: One exponent for all quantities.

    Shapes: logs (n, quantities), values (n,) positive.
    """
    logs, values = (np.ascontiguousarray(array, dtype=float) for array in (logs, values))
    return _fit_once(logs.tobytes(), values.tobytes(), logs.shape[1], tied)


@lru_cache(maxsize=_REMEMBERED)
def _fit_once(log_bytes: bytes, value_bytes: bytes, count: int, tied: bool) -> PowerSum:
    """Fit the law to the bytes of its runs, which are the key of a fit."""
    logs, values = np.frombuffer(log_bytes).reshape(-1, count), np.frombuffer(value_bytes)
    distinct = len(np.unique(logs.round(6), axis=0))
    free = 1 + count + (1 if tied else count)
    enough = all(len(np.unique(column.round(2))) >= MIN_VALUES for column in logs.T)
    identified = enough and distinct > free
    centers = logs.mean(axis=0)
    centered = logs - centers
    exponents = _exponent_grid(count, tied) if identified else np.array([PUBLISHED_EXPONENTS[:count]])
    coefficients, errors = _solve(centered, values, exponents)
    starts = _choose_starts(exponents, errors)
    constant, factors, chosen = _unpack(coefficients[starts[0]], exponents[starts[0]])
    if identified:
        fits = [_refine(centered, values, coefficients[start], exponents[start], tied) for start in starts]
        constant, factors, chosen = min(fits, key=lambda fit: fit[0])[1]
    return PowerSum(constant, factors, chosen, tuple(map(float, centers)), identified)


@cache
def _exponent_grid(count: int, tied: bool) -> np.ndarray:
    """Return every combination of exponents. Shapes: (combinations, quantities)."""
    if tied:
        return np.repeat(_EXPONENTS[:, None], count, axis=1)
    return np.stack(np.meshgrid(*[_EXPONENTS] * count, indexing="ij"), axis=-1).reshape(-1, count)


def _solve(centered: np.ndarray, values: np.ndarray, exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the non-negative coefficients of least relative error for each combination of exponents, and its square.

    With so few terms every subset of them is solved, and the best one without a negative coefficient is kept.
    Shapes: centered (n, quantities), exponents (g, quantities) -> (g, 1 + quantities), (g,).
    """
    terms = np.exp(-exponents[:, None, :] * centered[None])
    design = np.concatenate([np.ones((*terms.shape[:2], 1)), terms], axis=2) / values[None, :, None]
    gram, moments = np.einsum("gni,gnj->gij", design, design), design.sum(axis=1)
    size = design.shape[2]
    best = np.zeros((len(exponents), size))
    errors = np.full(len(exponents), np.inf)
    for width in range(1, size + 1):
        for subset in combinations(range(size), width):
            chosen = list(subset)
            inner = gram[:, chosen][:, :, chosen]
            ridge = 1e-12 * np.trace(inner, axis1=1, axis2=2)[:, None, None] * np.eye(width)
            solution = np.linalg.solve(inner + ridge, moments[:, chosen][:, :, None])[:, :, 0]
            error = len(values) - (solution * moments[:, chosen]).sum(axis=1)
            better = (solution >= 0).all(axis=1) & (error < errors)
            errors = np.where(better, error, errors)
            filled = np.zeros_like(best)
            filled[:, chosen] = solution
            best = np.where(better[:, None], filled, best)
    return best, errors


def _choose_starts(exponents: np.ndarray, errors: np.ndarray) -> list[int]:
    """Return the combination of least error, and the best one far from it, if any."""
    first = int(np.argmin(errors))
    far = np.abs(np.log(exponents / exponents[first])).max(axis=1) > _APART
    second = int(np.argmin(np.where(far, errors, np.inf)))
    return [first, second] if far[second] and errors[second] <= _NEAR * errors[first] else [first]


def _unpack(
    coefficients: Sequence[float] | np.ndarray, exponents: Sequence[float] | np.ndarray
) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    constant, *factors = (float(value) for value in coefficients)
    return constant, tuple(factors), tuple(float(value) for value in exponents)


def _refine(
    centered: np.ndarray, values: np.ndarray, coefficients: np.ndarray, exponents: np.ndarray, tied: bool
) -> tuple[float, tuple[float, tuple[float, ...], tuple[float, ...]]]:
    """Return the Huber loss of log errors, and the parameters that minimize it from a start."""
    from scipy.optimize import minimize  # a prediction does without this import

    count, log_values = centered.shape[1], np.log(values)
    lowest = _SMALLEST * values.min()
    start = np.concatenate([np.log(np.maximum(coefficients, lowest)), exponents[:1] if tied else exponents])

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        powers = np.repeat(theta[-1:], count) if tied else theta[1 + count :]
        parts = np.column_stack([np.full(len(values), theta[0]), theta[1 : 1 + count] - powers * centered])
        most = parts.max(axis=1, keepdims=True)
        shares = np.exp(parts - most)
        total = shares.sum(axis=1, keepdims=True)
        residual = (np.log(total) + most)[:, 0] - log_values
        shares /= total
        scaled = residual / HUBER_DELTA
        size = np.abs(scaled)
        slope = np.clip(scaled, -1, 1) / HUBER_DELTA
        by_power = -(slope[:, None] * shares[:, 1:] * centered).sum(axis=0)
        gradient = np.concatenate([slope @ shares, [by_power.sum()] if tied else by_power])
        return float(np.where(size <= 1, 0.5 * scaled**2, size - 0.5).sum()), gradient

    log_lowest, log_most = float(np.log(lowest)) - 5, float(np.log(values.max())) + 5
    limits = [(log_lowest, log_most)] * (1 + count) + [_BOUNDS] * (1 if tied else count)
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=_STOP)
    theta = solution.x
    powers = np.repeat(theta[-1:], count) if tied else theta[1 + count :]
    return float(solution.fun), _unpack(np.exp(theta[: 1 + count]), powers)
