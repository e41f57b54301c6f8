"""How much each variable counts in a kernel's distance, learned from the rows of several questions together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from perfcast.training.loop import reproducible

_LEAST_ROWS = 10
"""A question with fewer rows says nothing about relevance."""

_START_NOISE = 0.01
_START_LENGTH = 1.6
"""In units of a typical distance of two rows; both are learned from there."""


@dataclass(frozen=True)
class Question:
    """What one process is to explain: rows of the inputs, and a standardised answer for each. Shapes: (m,), (m,)."""

    rows: np.ndarray
    answers: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, logs: np.ndarray) -> Question | None:
        """Standardise; None where there is nothing to learn from. Shapes: rows (m,) int, logs (m,)."""
        spread = float(logs.std())
        if len(rows) < _LEAST_ROWS or not spread > 1e-9:
            return None
        return cls(rows, (logs - logs.mean()) / spread)


def learned_scales(
    inputs: np.ndarray, variables: Sequence[str], questions: Sequence[Question], *, steps: int, rows: int, seed: int
) -> np.ndarray:
    """Return the factor of every input with which distances are in units of the kernel's length.

    Automatic relevance determination: the factors of the variables maximise the marginal likelihood of Matern-3/2
    processes with one set of factors for all questions and a noise for each; every step looks at `rows` rows, drawn at
    random, of the next question.
    Shapes: inputs (n, columns), variables (columns,) -> (columns,).
    Source: Rasmussen and Williams, 2006, Gaussian Processes for Machine Learning, equations 4.17 and 5.8, section 5.1.
    """
    spread = float(np.sqrt(inputs.var(axis=0).sum())) or 1.0
    start = np.full(inputs.shape[1], 1.0 / (_START_LENGTH * spread))
    if not questions or not inputs.shape[1]:
        return start
    names = sorted(set(variables))
    variable = torch.tensor([names.index(name) for name in variables])
    with reproducible(seed):
        relevance = torch.zeros(len(names), requires_grad=True)
        noise = torch.full((len(questions),), float(np.log(_START_NOISE)), requires_grad=True)
        optimiser = torch.optim.Adam([relevance, noise], lr=0.1)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
        rng, scaled = np.random.default_rng(seed), (inputs * start).astype(np.float32)
        for step in range(steps):
            number = step % len(questions)
            question = questions[number]
            drawn = rng.choice(len(question.rows), min(rows, len(question.rows)), replace=False)
            points = torch.from_numpy(scaled[question.rows[drawn]]) * torch.exp(relevance)[variable]
            loss = _surprise(points, torch.from_numpy(question.answers[drawn]), noise[number])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            decay.step()
        factors = torch.exp(relevance)[variable].detach().numpy().astype(float)
    scales: np.ndarray = start * factors
    return scales


def _surprise(points: Tensor, answers: Tensor, log_noise: Tensor) -> Tensor:
    """Return minus the logarithm of the marginal likelihood per row, with the best variance of the process.

    Shapes: points (m, columns), answers (m,) -> ().
    """
    lengths = (points * points).sum(dim=1)
    squared = lengths[:, None] + lengths - 2.0 * points @ points.T
    # a root has no slope at zero
    distance = torch.sqrt(3.0 * torch.clamp(squared, min=1e-7))
    kernel = ((1.0 + distance) * torch.exp(-distance)).double()
    noisy = kernel + torch.exp(log_noise).double() * torch.eye(len(points), dtype=torch.float64)
    factor = torch.linalg.cholesky(noisy)
    weights = torch.cholesky_solve(answers[:, None], factor)[:, 0]
    variance = (answers @ weights) / len(points)
    surprise: Tensor = 0.5 * torch.log(variance) + torch.log(torch.diagonal(factor)).mean()
    return surprise
