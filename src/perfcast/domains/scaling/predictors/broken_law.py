"""Broken law: a power of compute whose exponent changes once, smoothly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from perfcast.domains.scaling.predictors.law_fit import HUBER_DELTA, PowerSum, fit_power_sums
from perfcast.domains.scaling.predictors.robust_fit import huber, minimize, padded, size_batches
from perfcast.domains.scaling.predictors.scaling_law import LawState, RunGroup, ScalingLawPredictor
from perfcast.domains.scaling.predictors.trained_runs import ACCURACY, TrainedRuns

MIN_RUNS = 7
"""Distinct values of compute that identify five parameters."""
WIDTH = 0.5
"""Natural logarithm of compute over which the exponent changes: too few runs lie near a break to tell it."""

_PLACES = (0.25, 0.5, 0.75)
"""Quantiles of the compute at which a fit starts to look for the break."""
_EXPONENTS = ((1.0, 1.0), (1.6, 0.6), (0.6, 1.6))
"""Exponents before and after the break at the start, over that of the law without a break."""
_LOWEST_EXPONENT, _HIGHEST_EXPONENT = 1e-3, 2.0
_MARGIN = 5.0
"""Natural logarithm by which the constant or the factor may lie outside the values."""
_SMALLEST = 1e-4


@dataclass(frozen=True)
class BrokenLaw:
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
        return np.asarray(self.constant + self.factor * np.exp(-self.before * t - (self.after - self.before) * turned))

    def to_state(self) -> dict[str, Any]:
        """Return the parameters as values of JSON."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BrokenLaw:
        """Return the law of `to_state`."""
        names = ("constant", "factor", "before", "after", "place", "center")
        return cls(**{name: float(state[name]) for name in names}, identified=bool(state["identified"]))


@dataclass(kw_only=True, eq=False, repr=False)
class BrokenLawPredictor(ScalingLawPredictor):
    """L = E + A C^-c0 (1 + (C / d)^(1/f))^(-c1 f), and the same for the error rate of an accuracy.

    C = 6 N D is the compute, d the place of the only break and f its width, which is held: few runs lie near a break.
    Both exponents, c0 before and c0 + c1 after the break, are positive. Every law starts at three places with three
    pairs of exponents around the law without a break, and the fit of least Huber loss is chosen.
    Source: Caballero, Gupta, Rish and Krueger, Broken Neural Scaling Laws, 2023, ICLR, equation 1 with one break.
    """

    def _fit_laws(self, runs: TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]) -> list[LawState]:
        compute = runs.log_compute
        fitted = [
            (compute[rows], np.maximum(1 - values[rows], _SMALLEST) if kind == ACCURACY else values[rows])
            for rows, kind in groups
        ]
        return [fit.to_state() for fit in fit_broken_laws(fitted)]

    def _evaluate(
        self, fits: dict[str, LawState], name: str, runs: TrainedRuns, rows: np.ndarray, kind: str
    ) -> np.ndarray:
        result = BrokenLaw.from_state(fits[name]).evaluate(runs.log_compute[rows])
        return 1 - result if kind == ACCURACY else result


def fit_broken_laws(run_sets: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[BrokenLaw]:
    """Fit a law to each of several sets of runs. Shapes: logarithms of compute (n,), positive values (n,), per set."""
    plain = fit_power_sums([(compute[:, None], values) for compute, values in run_sets])
    fitted = [_without_break(power_sum) for power_sum in plain]
    broken = [
        place
        for place, (compute, _) in enumerate(run_sets)
        if plain[place].identified and len(np.unique(compute.round(6))) >= MIN_RUNS
    ]
    for place in set(range(len(run_sets))) - set(broken):
        fitted[place] = BrokenLaw(**{**asdict(fitted[place]), "identified": False})
    starts = len(_PLACES) * len(_EXPONENTS)
    for batch in size_batches([len(run_sets[place][0]) * starts for place in broken]):
        places = [broken[position] for position in batch]
        results = _fit_batch([run_sets[place] for place in places], [fitted[place] for place in places])
        for place, result in zip(places, results, strict=True):
            fitted[place] = result
    return fitted


def _without_break(power_sum: PowerSum) -> BrokenLaw:
    exponent = power_sum.exponents[0]
    return BrokenLaw(power_sum.constant, power_sum.factors[0], exponent, exponent, 0.0, power_sum.centers[0])


def _fit_batch(run_sets: Sequence[tuple[np.ndarray, np.ndarray]], plain: Sequence[BrokenLaw]) -> list[BrokenLaw]:
    """Fit laws with about the same number of runs, each from every start."""
    t = padded([compute - fit.center for (compute, _), fit in zip(run_sets, plain, strict=True)], 0.0)
    log_values = padded([np.log(values) for _, values in run_sets], 0.0)
    known = padded([np.ones(len(values)) for _, values in run_sets], 0.0) > 0
    starts = list(product(_PLACES, _EXPONENTS))
    owners = np.repeat(np.arange(len(run_sets)), len(starts))
    least = np.where(known, log_values, np.inf).min(axis=1)
    most = np.where(known, log_values, -np.inf).max(axis=1)
    floor = least + np.log(_SMALLEST)
    theta = np.empty((len(owners), 5))
    for row, (owner, (quantile, (before, after))) in enumerate(
        zip(owners.tolist(), starts * len(run_sets), strict=True)
    ):
        fit = plain[owner]
        theta[row, :2] = np.maximum(np.log(np.maximum([fit.constant, fit.factor], 1e-300)), floor[owner])
        theta[row, 2:4] = fit.before * before, fit.before * after
        theta[row, 4] = np.quantile(t[owner][known[owner]], quantile)

    def model(theta: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = t[owners[chosen]]
        constant, factor, before, after, place = (theta[:, number : number + 1] for number in range(5))
        turned = WIDTH * np.logaddexp(0, (x - place) / WIDTH)
        power = factor - before * x - (after - before) * turned
        total = np.logaddexp(constant, power)
        share = np.exp(power - total)
        beyond = 1 / (1 + np.exp(-np.clip((x - place) / WIDTH, -50, 50)))
        slopes = (1 - share, share, share * (turned - x), -share * turned, share * (after - before) * beyond)
        residuals = (total - log_values[owners[chosen]]) / HUBER_DELTA
        return residuals, np.stack(slopes, axis=2) / HUBER_DELTA

    first, last = np.where(known, t, np.inf).min(axis=1), np.where(known, t, -np.inf).max(axis=1)
    exponents = [[np.full(len(run_sets), end)] * 2 for end in (_LOWEST_EXPONENT, _HIGHEST_EXPONENT)]
    lowest = np.column_stack([floor - _MARGIN, floor - _MARGIN, *exponents[0], first])
    highest = np.column_stack([most + _MARGIN, most + _MARGIN, *exponents[1], last])
    solved, losses = minimize(model, theta, (lowest[owners], highest[owners]), known[owners], huber)
    best = losses.reshape(len(run_sets), len(starts)).argmin(axis=1) + np.arange(len(run_sets)) * len(starts)
    return [
        BrokenLaw(float(np.exp(row[0])), float(np.exp(row[1])), row[2].item(), row[3].item(), row[4].item(), fit.center)
        for row, fit in zip(solved[best], plain, strict=True)
    ]
