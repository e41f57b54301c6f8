"""Attention over well-measured tasks and over the few rows of a new one, by Bayesian kriging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfcast.domains.nas.predictors.task_experts import FewShotTask, TaskExpertsPredictor, TaskWeights

_EXPERT_SCALES = (0.0, 0.3, 0.5, 1.0, 2.0, 4.0)
_RANGES = (0.03, 0.1, 0.2, 0.5, 100.0)
_SIMILARITY_WEIGHTS = (0.0, 0.0, 1.0, 3.0)
_CONSTANT_SCALES = (0.0, 0.1, 0.3)
_LOG10_NOISE = (-2.5, -0.5)
"""Bounds of the noise's decimal logarithm, in units of the mean of the task's rows."""

_BLOCK = 256
"""Draws of one block, which bounds the memory."""


@dataclass(kw_only=True, eq=False, repr=False)
class DeviceAttention(TaskExpertsPredictor):
    """Gaussian process of a new device, whose mean is attention over the experts of similar devices.

    The mean is the experts' predictions, weighted by attention: the softmax of minus the squared distance of an
    expert's predictions from the task's rows over twice a squared range, plus a weight of the descriptions that both
    tasks share. The covariance is the sum of a kernel of the experts' differences, a linear kernel of every group of
    item columns, and a constant. The noise is constant or grows with the value. The posterior mean, attention over the
    task's rows, has a closed form.

    Ranges, scales and noise are integrated out: `n_draws` draws from a wide prior, the same for all tasks, are weighted
    by the likelihood of the task's rows. A draw leaves every group of columns out with a probability from
    `group_dropout`. Everything is linear, so a task has one weight vector.
    Source: Rasmussen and Williams, 2006, Gaussian Processes for Machine Learning, equations 2.25, 2.30 and 5.4.
    """

    n_draws: int = 4000
    group_dropout: Sequence[float] = (0.3,)
    random_state: int = 0

    def _weigh(self, task: FewShotTask) -> TaskWeights:
        names = [name for name, values in task.outputs.items() if values.any()]
        prior = _Prior(np.random.default_rng(self.random_state), self.n_draws, len(names), self.group_dropout)
        size, count = len(task.values), len(task.experts)
        centered = (task.experts - task.experts.mean(axis=0)) / np.sqrt(count) if count else task.experts
        linear = [task.outputs[name] @ task.outputs[name].T for name in names]
        kernels = np.array([*linear, centered.T @ centered, np.ones((size, size))])
        distances = ((task.experts - task.values) ** 2).sum(axis=1)
        likelihoods, attentions, solutions = [], [], []
        for start in range(0, self.n_draws, _BLOCK):
            block = slice(start, start + _BLOCK)
            attention = _softmax(
                prior.similarity_weight[block, None] * task.similarity - distances / (2 * prior.range[block, None] ** 2)
            )
            mean = attention @ task.experts if count else np.ones((len(attention), size))
            noise = prior.noise[block, None] * np.maximum(mean, 0.2) ** prior.noise_power[block, None]
            covariance = np.einsum("dk,kij->dij", prior.scales[block] ** 2, kernels)
            covariance[:, np.arange(size), np.arange(size)] += noise**2
            error = task.values - mean
            solution = np.linalg.solve(covariance, error[:, :, None])[:, :, 0]
            _, log_determinant = np.linalg.slogdet(covariance)
            likelihoods.append(-0.5 * (error * solution).sum(axis=1) - 0.5 * log_determinant)
            attentions.append(attention)
            solutions.append(solution)
        share = _softmax(np.concatenate(likelihoods)[None])[0]
        # one sum over draws per kernel: its scale, the draw's share, and the solution
        by_kernel = (share[:, None] * prior.scales**2).T @ np.concatenate(solutions)
        along = centered @ by_kernel[-2] / np.sqrt(max(1, count))
        return TaskWeights(
            constant=float(by_kernel[-1].sum()) + (0.0 if count else 1.0),
            experts=share @ np.concatenate(attentions) + along - (along.mean() if count else 0.0),
            outputs={name: task.outputs[name].T @ by_kernel[index] for index, name in enumerate(names)},
        )


class _Prior:
    """Draws from the prior: scales (draws, groups + 2), and (draws,) of the others.

    Scales are in units of the mean of the task's rows. Those of groups are 1 % to 100 % of it.
    """

    def __init__(self, rng: np.random.Generator, n_draws: int, groups: int, group_dropout: Sequence[float]) -> None:
        is_used = rng.random((n_draws, groups)) >= rng.choice(list(group_dropout), n_draws)[:, None]
        by_group = 10 ** rng.uniform(-2, 0, (n_draws, groups)) * is_used
        of_experts, constant = rng.choice(_EXPERT_SCALES, n_draws), rng.choice(_CONSTANT_SCALES, n_draws)
        self.scales = np.column_stack([by_group, of_experts, constant])
        self.noise = 10 ** rng.uniform(*_LOG10_NOISE, n_draws)
        self.range = rng.choice(_RANGES, n_draws)
        self.similarity_weight = rng.choice(_SIMILARITY_WEIGHTS, n_draws)
        self.noise_power = rng.choice([0.0, 1.0], n_draws)


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Return shares that sum to 1 over the last axis; none where it is empty."""
    if not logits.shape[-1]:
        return logits
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
