"""Robust fit of an accuracy that rises from chance to 1 as a sigmoid of one quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from perfcast.domains.scaling.predictors.robust_fit import minimize, padded, size_batches, soft_l1

ERROR_SCALE = 0.01
"""Error of a share above which the loss is linear: a point, about the noise of a repeated training."""
MIN_RUNS = 4
"""Distinct values of the quantity that identify the slope and the middle."""

_SLOPES = np.geomspace(0.2, 20, 16)
"""Slopes to start from, over the spread of the quantity."""
_MIDDLES = np.linspace(-4, 8, 25)
"""Middles to start from: spreads ahead of the mean, in the direction in which the share rises."""
_LOWEST, _HIGHEST = np.array([np.log(0.02), -30.0]), np.array([np.log(60.0), 60.0])
"""Bounds of the logarithm of the slope and of the middle, in the same units."""
_STEEPEST = 50.0
"""Largest exponent."""


@dataclass(frozen=True)
class Sigmoid:
    """share = chance + (1 - chance) / (1 + exp(-slope (x - middle))); `identified` is False for too few runs."""

    slope: float
    middle: float
    chance: float
    identified: bool = True

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """Return the share at values of the quantity. Shapes: (n,) -> (n,)."""
        score = np.clip(self.slope * (x - self.middle), -_STEEPEST, _STEEPEST)
        share: np.ndarray = self.chance + (1 - self.chance) / (1 + np.exp(-score))
        return share

    def to_state(self) -> dict[str, Any]:
        """Return the parameters as values of JSON."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Sigmoid:
        """Return the sigmoid of `to_state`."""
        numbers = {name: float(state[name]) for name in ("slope", "middle", "chance")}
        return cls(**numbers, identified=bool(state["identified"]))


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
    fitted = {place: _flat(task, sign) for place, task in enumerate(tasks) if not _is_identified(task.x)}
    others = [place for place in range(len(tasks)) if place not in fitted]
    # the grid of starts is a factor of the memory
    for batch in size_batches([len(tasks[place].x) * len(_SLOPES) for place in others]):
        places = [others[position] for position in batch]
        fitted |= zip(places, _fit_batch([tasks[place] for place in places], sign), strict=True)
    return [fitted[place] for place in range(len(tasks))]


def fit_sigmoid(x: np.ndarray, shares: np.ndarray, chance: float, *, rising: bool) -> Sigmoid:
    """Fit slope and middle to the shares of one task. Shapes: x and shares (n,)."""
    return fit_sigmoids([SharesOfRuns(x, shares, chance)], rising=rising)[0]


def _is_identified(x: np.ndarray) -> bool:
    return len(np.unique(x.round(6))) >= MIN_RUNS and float(x.std()) > 0


def _fit_batch(tasks: Sequence[SharesOfRuns], sign: float) -> list[Sigmoid]:
    """Fit tasks with about the same number of runs."""
    centers, spreads = (np.array([of(task.x) for task in tasks]) for of in (np.mean, np.std))
    scaled = padded(
        [sign * (task.x - center) / spread for task, center, spread in zip(tasks, centers, spreads, strict=True)], 0.0
    )
    shares = padded([task.shares for task in tasks], 0.0)
    known = padded([np.ones(len(task.x)) for task in tasks], 0.0) > 0
    chance = np.array([task.chance for task in tasks])

    def model(theta: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope, middle = np.exp(theta[:, :1]), theta[:, 1:]
        score = np.clip(slope * (scaled[chosen] - middle), -_STEEPEST, _STEEPEST)
        rate, above = 1 / (1 + np.exp(-score)), 1 - chance[chosen, None]
        residuals = (chance[chosen, None] + above * rate - shares[chosen]) / ERROR_SCALE
        change = above * rate * (1 - rate) / ERROR_SCALE
        return residuals, np.stack([change * score, -change * slope], axis=2)

    starts = np.stack(np.meshgrid(np.log(_SLOPES), _MIDDLES, indexing="ij"), axis=-1).reshape(-1, 2)
    every = np.arange(len(tasks))
    screened = []
    for start in starts:
        residuals, _ = model(np.broadcast_to(start, (len(tasks), 2)), every)
        screened.append(np.where(known, soft_l1(residuals)[0], 0.0).sum(axis=1))
    best = starts[np.argmin(screened, axis=0)]
    ends = (np.broadcast_to(_LOWEST, best.shape), np.broadcast_to(_HIGHEST, best.shape))
    theta, _ = minimize(model, best, ends, known, soft_l1)
    slopes, middles = sign * np.exp(theta[:, 0]) / spreads, centers + sign * theta[:, 1] * spreads
    return [Sigmoid(float(slopes[i]), float(middles[i]), task.chance) for i, task in enumerate(tasks)]


def _flat(task: SharesOfRuns, sign: float) -> Sigmoid:
    """Return a sigmoid through the mean of too few runs, with a slope of a tenth."""
    share = float(np.clip((task.shares.mean() - task.chance) / (1 - task.chance), 1e-3, 1 - 1e-3))
    slope = 0.1 * sign
    middle = float(task.x.mean()) - float(np.log(share / (1 - share))) / slope
    return Sigmoid(slope, middle, task.chance, identified=False)
