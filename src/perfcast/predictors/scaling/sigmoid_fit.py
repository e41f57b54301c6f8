"""Robust fit of an accuracy that rises from chance to 1 as a sigmoid of one quantity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

ERROR_SCALE = 0.01
"""Error of a share above which the loss is linear: a point, about the noise of a repeated training."""
MIN_RUNS = 4
"""Distinct values of the quantity that identify the slope and the middle."""

_SLOPES = np.geomspace(0.2, 20, 16)
"""Slopes to start from, over the spread of the quantity."""
_MIDDLES = np.linspace(-4, 8, 25)
"""Middles to start from: spreads ahead of the mean, in the direction in which the share rises."""


@dataclass(frozen=True)
class Sigmoid:
    """share = chance + (1 - chance) / (1 + exp(-slope (x - middle))); `identified` is False for too few runs."""

    slope: float
    middle: float
    chance: float
    identified: bool = True

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """Return the share at values of the quantity. Shapes: (n,) -> (n,)."""
        score = np.clip(self.slope * (x - self.middle), -50, 50)
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


def fit_sigmoid(x: np.ndarray, shares: np.ndarray, chance: float, *, rising: bool) -> Sigmoid:
    """Fit slope and middle to shares of correct answers.

    The loss is soft L1 of the errors. A grid of starts is screened at once, and the best one is refined.

    Args:
        rising: Whether the share rises with x, as with compute; it falls with a loss.

    Shapes: x and shares (n,).
    Source: least squares with a soft L1 loss after Branch, Coleman and Li, 1999, SIAM J. Sci. Comput. 21.
    """
    from scipy.optimize import least_squares  # a prediction does without this import

    sign = 1.0 if rising else -1.0
    center, spread = float(x.mean()), float(x.std())
    if len(np.unique(x.round(6))) < MIN_RUNS or spread <= 0:
        return _flat(x, shares, chance, sign)
    scaled = sign * (x - center) / spread

    def residuals(theta: np.ndarray) -> np.ndarray:
        share = chance + (1 - chance) / (1 + np.exp(-np.clip(np.exp(theta[0]) * (scaled - theta[1]), -50, 50)))
        return np.asarray((share - shares) / ERROR_SCALE)

    slopes, middles = (values.ravel() for values in np.meshgrid(_SLOPES, _MIDDLES, indexing="ij"))
    score = np.clip(slopes[:, None] * (scaled[None] - middles[:, None]), -50, 50)
    errors = (chance + (1 - chance) / (1 + np.exp(-score)) - shares[None]) / ERROR_SCALE
    best = int(np.argmin((np.sqrt(1 + errors**2) - 1).sum(axis=1)))
    start = np.array([np.log(slopes[best]), middles[best]])
    limits = (np.array([np.log(0.02), -30.0]), np.array([np.log(60.0), 60.0]))
    solution = least_squares(residuals, start, bounds=limits, loss="soft_l1", max_nfev=100)
    slope = float(np.exp(solution.x[0])) / spread
    return Sigmoid(sign * slope, center + sign * float(solution.x[1]) * spread, chance)


def _flat(x: np.ndarray, shares: np.ndarray, chance: float, sign: float) -> Sigmoid:
    """Return a sigmoid through the mean of too few runs, with a slope of a tenth."""
    share = float(np.clip((shares.mean() - chance) / (1 - chance), 1e-3, 1 - 1e-3))
    slope = 0.1 * sign
    return Sigmoid(slope, float(x.mean()) - float(np.log(share / (1 - share))) / slope, chance, identified=False)
