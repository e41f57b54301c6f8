"""Attention over well-measured tasks and over the few rows of a new one, by Bayesian kriging."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfcast.predictors.transfer.task_experts import Known, TaskExpertsPredictor, Weights

_SCALES = (0.0, 0.3, 0.5, 1.0, 2.0, 4.0)
_DISTANCES = (0.03, 0.1, 0.2, 0.5, 100.0)
_LIKENESS = (0.0, 0.0, 1.0, 3.0)
_CONSTANTS = (0.0, 0.1, 0.3)
_NOISE = (-2.5, -0.5)
"""Exponents of ten between which the noise lies, in units of the mean of the known rows."""

_DRAWS_AT_ONCE = 256


class DeviceAttentionPredictor(TaskExpertsPredictor):
    """What similar devices and similar measured items say of a new device, weighed by how well it explains its rows.

    The forecast of a new task (a device) is a Gaussian process. Its mean is the experts' forecasts, weighted by
    attention: the softmax of minus the squared distance of an expert's forecasts from the task's known rows over twice
    a squared range, plus a share of what both tasks are described by alike. Its covariance is what experts differ in,
    a linear kernel of every group of item columns, and a constant; the noise is constant or grows with the value. The
    posterior mean, attention over the known rows, has a closed form.
    Ranges, scales and noise are not chosen but integrated out: `draws` settings from a wide prior, the same for all
    tasks, count by the likelihood of the known rows; a setting leaves every group of columns out with a probability
    drawn from `absent`. Everything is linear, so a task keeps one weight vector.
    Source: Rasmussen and Williams, 2006, Gaussian Processes for Machine Learning, equations 2.25, 2.30 and 5.4.
    """

    def __init__(
        self,
        *,
        draws: int = 4000,
        absent: Sequence[float] = (0.3,),
        few_rows: int = 100,
        expert_rows: int = 4000,
        random_state: int = 0,
    ) -> None:
        self.absent = absent
        self.draws = draws
        self.few_rows = few_rows
        self.expert_rows = expert_rows
        self.random_state = random_state

    def _weigh(self, known: Known) -> Weights:
        names = [name for name in known.groups if known.groups[name].any()]
        prior = _Prior(np.random.default_rng(self.random_state), self.draws, len(names), self.absent)
        size, experts = len(known.values), len(known.experts)
        differing = (
            (known.experts - known.experts.mean(axis=0)) / np.sqrt(max(1, experts)) if experts else known.experts
        )
        grouped = [known.groups[name] @ known.groups[name].T for name in names]
        kernels = np.array([*grouped, differing.T @ differing, np.ones((size, size))])
        apart = ((known.experts - known.values) ** 2).sum(axis=1)
        likelihood, attention, solved = [], [], []
        for start in range(0, self.draws, _DRAWS_AT_ONCE):
            part = slice(start, start + _DRAWS_AT_ONCE)
            weights = _softmax(prior.likeness[part, None] * known.alike - apart / (2 * prior.range[part, None] ** 2))
            mean = weights @ known.experts if experts else np.ones((len(weights), size))
            noise = prior.noise[part, None] * np.maximum(mean, 0.2) ** prior.power[part, None]
            covariance = np.einsum("dk,kij->dij", prior.scales[part] ** 2, kernels)
            covariance[:, np.arange(size), np.arange(size)] += noise**2
            error = known.values - mean
            solution = np.linalg.solve(covariance, error[:, :, None])[:, :, 0]
            _, volume = np.linalg.slogdet(covariance)
            likelihood.append(-0.5 * (error * solution).sum(axis=1) - 0.5 * volume)
            attention.append(weights)
            solved.append(solution)
        share = _softmax(np.concatenate(likelihood)[None])[0]
        solution, squares = np.concatenate(solved), prior.scales**2
        # one sum over draws per kernel: its scale, the draw's share, and the solution
        moved = (share[:, None] * squares).T @ solution
        along = differing @ moved[-2] / np.sqrt(max(1, experts))
        return Weights(
            constant=float(moved[-1].sum()) + (0.0 if experts else 1.0),
            experts=share @ np.concatenate(attention) + along - (along.mean() if experts else 0.0),
            groups={name: known.groups[name].T @ moved[place] for place, name in enumerate(names)},
        )


class _Prior:
    """Settings drawn from the prior: scales (draws, groups + 2), and (draws,) of the others.

    Scales are in units of the mean of the known rows, from 1 % to 100 % of it.
    """

    def __init__(self, random: np.random.Generator, draws: int, groups: int, absent: Sequence[float]) -> None:
        present = random.random((draws, groups)) >= random.choice(list(absent), draws)[:, None]
        own = 10 ** random.uniform(-2, 0, (draws, groups)) * present
        between, constant = random.choice(_SCALES, draws), random.choice(_CONSTANTS, draws)
        self.scales = np.column_stack([own, between, constant])
        self.noise = 10 ** random.uniform(*_NOISE, draws)
        self.range = random.choice(_DISTANCES, draws)
        self.likeness = random.choice(_LIKENESS, draws)
        self.power = random.choice([0.0, 1.0], draws)


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Return shares that sum to 1 over the last axis; none where it is empty."""
    if not logits.shape[-1]:
        return logits
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: np.ndarray = raised / raised.sum(axis=-1, keepdims=True)
    return shares
