"""Uncertainty of a law's prediction of a large run, and the small runs that reduce it most.

The parameters of a law have the Gaussian posterior of Laplace's approximation: the inverse of J'J / noise^2 plus that
of a weak prior, with J the derivatives of the law at its runs. A further run adds one row to J, whatever its result is.
So the variance of a prediction after runs that nobody has trained is known now.

Source: Bayesian c-optimal design, Chaloner and Verdinelli, 1995, Bayesian Experimental Design: A Review, Statistical
Science 10(3), sections 2.2 and 4, for laws linearized at their fit; c-optimality by Elfving, 1952.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfcast.domains.scaling.predictors.curve_fit import MIN_PAIRS, SharesOfRuns, Sigmoid, fit_sigmoids
from perfcast.domains.scaling.predictors.law_fit import PowerSum, fit_power_sums

_PRIOR_FACTOR, _PRIOR_EXPONENT = 3.0, 0.15
"""Standard deviations of the prior: of the logarithms of E, A and B, and of the exponent. Published exponents are from
0.05 to 0.45 (Kaplan et al., 2020; Hoffmann et al., 2022; Besiroglu et al., 2024)."""
_PRIOR_SLOPE, _PRIOR_MIDDLE = 1.0, 2.0
"""Standard deviations of the prior of a sigmoid: of the logarithm of its slope, and of its middle over 1 / slope."""
_POWERS = (0.0, 0.5, 1.0)
"""Powers of the cost by which a rule of the choice divides the reduction."""
_MIN_NOISE = 1e-3
"""Smallest standard deviation of a result about its law: the noise of a repeated training is above it."""


@dataclass(frozen=True)
class StepDesign:
    """Posterior covariance of the parameters of one step of a law, and the effect of the parameters on a prediction.

    Shapes: covariance (p, p); effect (p,), derivatives of the logarithm of the prediction; `candidates` (runs, p),
    derivatives of the results of runs that may be trained, over their noise.
    """

    covariance: np.ndarray
    effect: np.ndarray
    candidates: np.ndarray

    @property
    def variance(self) -> float:
        """Variance of the logarithm of the prediction that comes from this step."""
        return float(self.effect @ self.covariance @ self.effect)

    def reductions(self) -> np.ndarray:
        """Return by how much each run alone would reduce the variance, (runs,)."""
        seen = self.candidates @ self.covariance
        return np.asarray((seen @ self.effect) ** 2 / (1 + (seen * self.candidates).sum(axis=1)))

    def add(self, run: int) -> StepDesign:
        """Return the design after a run."""
        seen = self.covariance @ self.candidates[run]
        covariance = self.covariance - np.outer(seen, seen) / (1 + self.candidates[run] @ seen)
        return replace(self, covariance=covariance)


@dataclass(frozen=True)
class LawDesign:
    """Prediction of one task of a large run, with the variance of its logarithm by step of the law, and its noise."""

    prediction: float
    steps: tuple[StepDesign, ...]
    noise: float

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm of the result about its prediction."""
        return float(np.sqrt(self.noise**2 + sum(step.variance for step in self.steps)))

    def spreads_after(self) -> np.ndarray:
        """Return `spread` after each of the candidate runs alone, (runs,)."""
        variance = self.spread**2 - np.sum([step.reductions() for step in self.steps], axis=0)
        return np.asarray(np.sqrt(np.maximum(variance, self.noise**2)))

    def add(self, run: int) -> LawDesign:
        """Return the design after a run."""
        return replace(self, steps=tuple(step.add(run) for step in self.steps))


def design_loss(logs: np.ndarray, values: np.ndarray, target: np.ndarray, candidates: np.ndarray) -> LawDesign:
    """Return the design of a loss, by the over-training law.

    Shapes: logs (n, 2), natural logarithms of parameters and tokens; values (n,); target (2,); candidates (runs, 2).
    """
    power_sum = fit_power_sums([(logs, values)], tied=True)[0]
    noise, covariance = _fit_posterior(power_sum, logs, np.log(power_sum.evaluate(logs) / values))
    effect = _law_slopes(power_sum, target[None])[0]
    step = StepDesign(covariance, effect, _law_slopes(power_sum, candidates) / noise)
    return LawDesign(float(power_sum.evaluate(target[None])[0]), (step,), noise)


def design_error_rate(logs: np.ndarray, values: np.ndarray, target: np.ndarray, candidates: np.ndarray) -> LawDesign:
    """Return the design of an accuracy without a loss before it, by the over-training law of its error rate.

    Shapes: as `design_loss`.
    """
    design = design_loss(logs, np.maximum(1 - values, 1e-4), target, candidates)
    accuracy = max(1 - design.prediction, 1e-4)
    factor = -design.prediction / accuracy
    steps = tuple(replace(step, effect=step.effect * factor) for step in design.steps)
    return LawDesign(accuracy, steps, design.noise * abs(factor))


def design_accuracy(logs: np.ndarray, measured: SharesOfRuns, target: np.ndarray, candidates: np.ndarray) -> LawDesign:
    """Return the design of an accuracy, by the two-step law: a run tells about both steps.

    Shapes: as `design_loss`; the quantity of `measured` is the loss.
    """
    losses, shares, _ = measured
    if len(np.unique(losses.round(6))) < MIN_PAIRS:
        return design_error_rate(logs, shares, target, candidates)
    first = design_loss(logs, losses, target, candidates)
    link = fit_sigmoids([measured], rising=False)[0]
    power_sum = fit_power_sums([(logs, losses)], tied=True)[0]
    slopes = _link_slopes(link, losses)
    noise = _noise(link.evaluate(losses) - shares, slopes.shape[1])
    prior = np.array([_PRIOR_SLOPE, _PRIOR_MIDDLE / abs(link.slope)])
    covariance = np.linalg.inv(slopes.T @ slopes / noise**2 + np.diag(1 / prior**2))
    accuracy = float(link.evaluate(np.array([first.prediction]))[0])
    second = StepDesign(
        covariance,
        _link_slopes(link, np.array([first.prediction]))[0] / accuracy,
        _link_slopes(link, power_sum.evaluate(candidates)) / noise,
    )
    # the loss is known by its logarithm
    factor = _link_change(link, first.prediction) * first.prediction / accuracy
    steps = tuple(replace(step, effect=step.effect * factor) for step in first.steps)
    return LawDesign(accuracy, (*steps, second), noise / accuracy)


def choose_runs(designs: Sequence[LawDesign], compute: np.ndarray, budget: float, count: int) -> list[int]:
    """Return the candidate runs to train, in the order of choice: at most `count`, of at most `budget` together.

    No run is repeated: different runs show that a law is a little wrong, and one run that is repeated does not.
    Rules add one run after the other: that of the largest reduction of the mean log spread, and those of the largest
    reduction per cost and per square root of the cost. The best of their plans is kept.
    Source: greedy choice by benefit and by benefit per cost, Leskovec et al., 2007, Cost-effective Outbreak Detection
    in Networks, KDD.
    """
    plans = [_choose_greedily(designs, compute, budget, count, power) for power in _POWERS]
    return min(plans, key=lambda plan: mean_log_spread(add_runs(designs, plan)))


def add_runs(designs: Sequence[LawDesign], runs: Sequence[int]) -> list[LawDesign]:
    """Return the designs after some runs."""
    after = list(designs)
    for run in runs:
        after = [design.add(run) for design in after]
    return after


def mean_log_spread(designs: Sequence[LawDesign]) -> float:
    """Return the mean natural logarithm of the spreads of several tasks."""
    return float(np.mean(np.log([design.spread for design in designs])))


def _choose_greedily(
    designs: Sequence[LawDesign], compute: np.ndarray, budget: float, count: int, power: float
) -> list[int]:
    chosen: list[int] = []
    remaining, current = budget, list(designs)
    while len(chosen) < count:
        gains = np.mean([np.log(design.spread / design.spreads_after()) for design in current], axis=0)
        scores = np.where(compute <= remaining, gains / (compute / budget) ** power, -np.inf)
        scores[chosen] = -np.inf
        best = int(np.argmax(scores))
        if not scores[best] > 0:
            break
        chosen.append(best)
        remaining -= float(compute[best])
        current = add_runs(current, [best])
    return chosen


def _fit_posterior(power_sum: PowerSum, logs: np.ndarray, residuals: np.ndarray) -> tuple[float, np.ndarray]:
    """Return noise, and covariance of log E, log A, log B and the exponent."""
    slopes = _law_slopes(power_sum, logs)
    noise = _noise(residuals, slopes.shape[1])
    prior = np.array([*[_PRIOR_FACTOR] * (slopes.shape[1] - 1), _PRIOR_EXPONENT])
    return noise, np.linalg.inv(slopes.T @ slopes / noise**2 + np.diag(1 / prior**2))


def _law_slopes(power_sum: PowerSum, logs: np.ndarray) -> np.ndarray:
    """Return the derivatives of the logarithm of a law by log E, log A, log B and the exponent, (n, 4)."""
    centered = logs - np.array(power_sum.centers)
    terms = np.array(power_sum.factors) * np.exp(-np.array(power_sum.exponents) * centered)
    total = power_sum.evaluate(logs)[:, None]
    shares = terms / total
    return np.column_stack([power_sum.constant / total, shares, -(shares * centered).sum(axis=1)])


def _link_change(link: Sigmoid, loss: float) -> float:
    """Return the derivative of the share by the loss."""
    rate = (link.evaluate(np.array([loss]))[0] - link.chance) / (1 - link.chance)
    return float((1 - link.chance) * rate * (1 - rate) * link.slope)


def _link_slopes(link: Sigmoid, losses: np.ndarray) -> np.ndarray:
    """Return the derivatives of the share by the logarithm of the slope and by the middle, (n, 2)."""
    rate = (link.evaluate(losses) - link.chance) / (1 - link.chance)
    change = (1 - link.chance) * rate * (1 - rate)
    return np.column_stack([change * link.slope * (losses - link.middle), -change * link.slope])


def _noise(residuals: np.ndarray, parameters: int) -> float:
    """Return the standard deviation of results about a law with so many parameters."""
    free = max(len(residuals) - parameters, 1)
    return max(float(np.sqrt((residuals**2).sum() / free)), _MIN_NOISE)
