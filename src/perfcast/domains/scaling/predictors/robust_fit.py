"""Robust nonlinear least squares of many small problems at once.

A table of training runs has hundreds of laws with a few parameters each. One call of an optimizer per law costs far
more than its arithmetic, so all laws with about as many runs take every step together, as arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np

Problem = TypeVar("Problem")
Fitted = TypeVar("Fitted")
Model = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""(theta (g, p), problems (g,)) -> residuals (g, n) and their derivatives (g, n, p)."""
Loss = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Residuals -> loss and weight of each; the weight is the derivative of the loss over the residual."""

_MAX_STEPS = 100
_TOLERANCE = 1e-6
"""Relative change of the loss that ends a fit: the noise of a run is far above it."""
_FIRST_DAMPING = 1e-3
_MAX_DAMPING = 1e8
_DAMPING_FACTOR = 5.0
_SINGULAR = 1e-10
"""Share of the largest element that is added to the diagonal of a system: a parameter may have no effect."""
_MAX_CELLS = 400_000
"""Runs x laws of one batch."""
_MAX_GROWTH = 1.5
"""Most runs of a law of a batch, over the fewest: padding is computed too."""


@dataclass(frozen=True)
class Law:
    """Fitted parameters of a law. `identified` is False where the runs do not determine them."""

    def to_state(self) -> dict[str, Any]:
        """Return the parameters as values of JSON."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the law of `to_state`; further keys are left out."""
        return cls(**{field.name: state[field.name] for field in fields(cls)})


def huber(residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Huber's loss and its weights: quadratic up to 1, linear above it."""
    size = np.abs(residuals)
    losses = np.where(size <= 1, 0.5 * size**2, size - 0.5)
    return losses, 1 / np.maximum(size, 1)


def soft_l1(residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sqrt(1 + r^2) - 1 and its weights: a smooth loss that is linear for large residuals."""
    root = np.sqrt(1 + residuals**2)
    return root - 1, 1 / root


def fit_in_batches(
    problems: Sequence[Problem],
    size: Callable[[Problem], int],
    fit: Callable[[list[Problem]], Sequence[Fitted]],
) -> list[Fitted]:
    """Return the fit of every problem; those of about one size are fitted together, as many as memory allows."""
    fitted: dict[int, Fitted] = {}
    for batch in _size_batches([size(problem) for problem in problems]):
        fitted |= zip(batch.tolist(), fit([problems[place] for place in batch]), strict=True)
    return [fitted[place] for place in range(len(problems))]


def _size_batches(sizes: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield the positions of problems of about one size."""
    order = np.argsort(np.asarray(sizes), kind="stable")
    first = 0
    for place in range(1, len(order) + 1):
        if place < len(order):
            largest = sizes[order[place]]
            small = (place + 1 - first) * largest <= _MAX_CELLS
            if small and largest <= _MAX_GROWTH * sizes[order[first]]:
                continue
        yield order[first:place]
        first = place


def padded(arrays: Sequence[np.ndarray], fill: float = 0.0) -> np.ndarray:
    """Return arrays of different length as one. Shapes: (n_i, ...) each -> (arrays, largest n_i, ...)."""
    longest = max(map(len, arrays))
    filled = np.full((len(arrays), longest, *arrays[0].shape[1:]), fill)
    for row, array in enumerate(arrays):
        filled[row, : len(array)] = array
    return filled


def known_places(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return which places of `padded` hold values, (arrays, largest n_i) bool."""
    return padded([np.ones(len(array)) for array in arrays]) > 0


def minimize(
    model: Model,
    start: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    known: np.ndarray,
    loss: Loss,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters of least loss of every problem, and that loss.

    Args:
        bounds: Lowest and highest parameters, (problems, p) each.
        known: True for residuals that count: problems are padded to one size.

    Shapes: start (problems, p), known (problems, n) -> (problems, p), (problems,).
    Source: iteratively reweighted least squares (Holland and Welsch, 1977, Communications in Statistics A6) with the
    damping of Levenberg and Marquardt (Marquardt, 1963, J. SIAM 11); parameters at a bound that the gradient points to
    stay there.
    """
    low, high = bounds
    best = np.clip(start, low, high)
    values = np.full(len(best), np.inf)
    active = np.arange(len(best))
    theta = best.copy()
    damping = np.full(len(best), _FIRST_DAMPING)
    residuals, slopes = model(theta, active)
    current, weights = _total(loss, residuals, known)
    for _ in range(_MAX_STEPS):
        values[active] = current
        best[active] = theta
        at_bound = (theta <= low[active], theta >= high[active])
        step = _step(residuals, slopes, weights, damping, at_bound)
        trial = np.clip(theta + step, low[active], high[active])
        tried, tried_slopes = model(trial, active)
        reached, tried_weights = _total(loss, tried, known[active])
        better = reached < current
        small = current - reached <= _TOLERANCE * np.maximum(current, 1e-12)
        done = np.where(better, small & (damping <= 1), damping > _MAX_DAMPING)
        theta = np.where(better[:, None], trial, theta)
        current = np.where(better, reached, current)
        residuals = np.where(better[:, None], tried, residuals)
        weights = np.where(better[:, None], tried_weights, weights)
        slopes = np.where(better[:, None, None], tried_slopes, slopes)
        damping = np.where(better, damping / _DAMPING_FACTOR, damping * _DAMPING_FACTOR)
        values[active] = current
        best[active] = theta
        if done.all():
            break
        if done.any():
            active = active[~done]
            theta = theta[~done]
            current = current[~done]
            damping = damping[~done]
            residuals = residuals[~done]
            slopes = slopes[~done]
            weights = weights[~done]
    return best, values


def _total(loss: Loss, residuals: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of every problem, and the weights of its residuals, 0 for padding."""
    losses, weights = loss(residuals)
    return np.where(known, losses, 0.0).sum(axis=1), np.where(known, weights, 0.0)


def _step(
    residuals: np.ndarray,
    slopes: np.ndarray,
    weights: np.ndarray,
    damping: np.ndarray,
    at_bound: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return the damped step of weighted least squares; parameters at their lowest or highest value may not pass it.

    Shapes: residuals and weights (g, n), slopes (g, n, p), damping (g,), at_bound (g, p) each -> (g, p).
    """
    weighted = (slopes * weights[:, :, None]).transpose(0, 2, 1)
    gradient = (weighted @ residuals[:, :, None])[:, :, 0]
    matrix = weighted @ slopes
    is_lowest, is_highest = at_bound
    free = ~((is_lowest & (gradient > 0)) | (is_highest & (gradient < 0)))
    gradient = np.where(free, gradient, 0.0)
    matrix = np.where(free[:, :, None] & free[:, None, :], matrix, 0.0)
    diagonal = np.diagonal(matrix, axis1=1, axis2=2)
    added = damping[:, None] * diagonal + _SINGULAR * diagonal.max(axis=1, keepdims=True) + 1e-30
    system = matrix + added[:, :, None] * np.eye(slopes.shape[2])
    return -np.linalg.solve(system, gradient[:, :, None])[:, :, 0]
