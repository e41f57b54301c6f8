"""Gaussian process regression of log targets, one process per task, with relevances that all tasks share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.linalg import cho_factor, cho_solve
from torch import Tensor

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, fitted_by_group, groups_of, measured_rows, task_labels
from perfcast.training.loop import reproducible
from perfcast.utils.io import read_json, write_json

_LEAST_ROWS = 10
"""A question with fewer rows says nothing about relevance."""

_START_NOISE = 0.01
_START_LENGTH = 1.6
"""In units of a typical distance of two rows; both are learned from there."""


@dataclass(frozen=True)
class Question:
    """What one process is to explain: rows of the inputs, and a standardized answer for each. Shapes: (m,), (m,)."""

    rows: np.ndarray
    answers: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, logs: np.ndarray) -> Question | None:
        """Standardize; None where there is nothing to learn from. Shapes: rows (m,) int, logs (m,)."""
        spread = float(logs.std())
        if len(rows) < _LEAST_ROWS or not spread > 1e-9:
            return None
        return cls(rows, (logs - logs.mean()) / spread)


def learned_scales(
    inputs: np.ndarray, variables: Sequence[str], questions: Sequence[Question], *, steps: int, rows: int, seed: int
) -> np.ndarray:
    """Return the factor of every input with which distances are in units of the kernel's length.

    Automatic relevance determination: the factors of the variables maximize the marginal likelihood of Matern-3/2
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
        optimizer = torch.optim.Adam([relevance, noise], lr=0.1)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
        rng, scaled = np.random.default_rng(seed), (inputs * start).astype(np.float32)
        for step in range(steps):
            number = step % len(questions)
            question = questions[number]
            drawn = rng.choice(len(question.rows), min(rows, len(question.rows)), replace=False)
            points = torch.from_numpy(scaled[question.rows[drawn]]) * torch.exp(relevance)[variable]
            loss = _surprise(points, torch.from_numpy(question.answers[drawn]), noise[number])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
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


_BLOCK = 32
"""Rows forecast at once: their kernel stays in a processor's cache, which halves the time. Always as many, since a
product of another shape rounds otherwise, and a row's answer should not depend on how many others are asked for."""


@dataclass(frozen=True)
class Process:
    """One fitted process: constant + sum over points p of weight x kernel(x, p).

    Shapes: points (m, components) float32, weights (m,), in natural logarithms of the target.
    """

    points: np.ndarray
    weights: np.ndarray
    constant: float

    def forecast(self, asked: np.ndarray) -> np.ndarray:
        """Return log targets, to single precision. Shapes: (n, components) -> (n,)."""
        answer, weights = np.empty(len(asked)), self.weights.astype(np.float32)
        block = np.zeros((_BLOCK, asked.shape[1]), dtype=np.float32)
        scratch = np.empty((2, _BLOCK, len(weights)), dtype=np.float32)
        lengths = (self.points**2).sum(axis=1)
        for start in range(0, len(asked), _BLOCK):
            rows = asked[start : start + _BLOCK]
            block[: len(rows)] = rows
            kernel = matern(block, self.points, lengths, scratch)
            answer[start : start + _BLOCK] = (kernel @ weights)[: len(rows)]
        return self.constant + answer


class GaussianProcessPredictor(Predictor):
    """The mean of a Gaussian process with a Matern-3/2 kernel, separately for every task.

    Features as `LinearEncoder` gives them: standardized numbers, categories 0 or 1. How much each counts in a distance
    is learned (`_relevance.py`), once for all tasks. `noise` is the variance of a measurement in units of the
    process's own: fixed, since the one that fits best is led by the few entries that are far out. Those count less: the
    squared errors are Huber's beyond a deviation of `huber` (a logarithm), by `reweightings` rounds of reweighted least
    squares. Distances are taken in the `components` directions in which the scaled features vary most. Solving takes
    the cube of the rows, so a process learns from at most `rows` of them, and the one of a task never seen from
    `pooled_rows`, drawn at random.

    It does not extrapolate: far from the rows it learned the forecast goes to their median.
    Source: Rasmussen and Williams, 2006, Gaussian Processes for Machine Learning, algorithm 2.1; Huber, 1964, Annals of
    Mathematical Statistics 35(1).
    """

    encoder_: LinearEncoder
    center_: np.ndarray
    projection_: np.ndarray
    """Encoded features less `center_` to coordinates of the kernel (`matern`). Shape: (columns, components)."""
    processes_: dict[str, dict[str, Process]]

    def __init__(
        self,
        *,
        rows: int = 10_000,
        pooled_rows: int = 2000,
        noise: float = 0.01,
        huber: float = 0.01,
        reweightings: int = 2,
        relevance_rows: int = 1000,
        relevance_steps: int = 120,
        components: int = 160,
        min_count: int = 20,
        clip: float = 0.25,
        random_state: int = 0,
    ) -> None:
        self.rows, self.pooled_rows = rows, pooled_rows
        self.noise, self.huber, self.reweightings = noise, huber, reweightings
        self.relevance_rows, self.relevance_steps = relevance_rows, relevance_steps
        self.components = components
        self.min_count, self.clip = min_count, clip
        self.random_state = random_state

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.encoder_ = LinearEncoder(min_count=self.min_count, clip=self.clip).fit(X, feature_columns(self.columns_))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        measured = measured_rows(log_y, self.targets_)
        groups = [groups_of(tasks, rows) for rows in measured]
        self._choose_distance(encoded, log_y, groups)
        points = self._placed(encoded).astype(np.float32)
        rng = np.random.default_rng(self.random_state)

        def solved(index: int, rows: np.ndarray) -> Process:
            limit = self.pooled_rows if rows is groups[index][POOLED] else self.rows
            drawn = np.flatnonzero(rows)
            if len(drawn) > limit:
                drawn = np.sort(rng.choice(drawn, limit, replace=False))
            return self._process(points[drawn], log_y[drawn, index])

        self.processes_ = {
            target: fitted_by_group(groups[index], partial(solved, index)) for index, target in enumerate(self.targets_)
        }

    def _choose_distance(self, encoded: np.ndarray, log_y: np.ndarray, groups: list[dict[str, np.ndarray]]) -> None:
        asked = [
            Question.of(np.flatnonzero(rows), log_y[rows, index])
            for index, own in enumerate(groups)
            for task, rows in own.items()
            if task != POOLED
        ]
        scales = learned_scales(
            encoded,
            self.encoder_.variables_,
            [question for question in asked if question is not None],
            steps=self.relevance_steps,
            rows=self.relevance_rows,
            seed=self.random_state,
        )
        self.center_ = encoded.mean(axis=0)
        scaled = (encoded - self.center_) * scales
        _, directions = np.linalg.eigh(scaled.T @ scaled)
        self.projection_ = np.sqrt(3.0) * scales[:, None] * directions[:, ::-1][:, : self.components]

    def _placed(self, encoded: np.ndarray) -> np.ndarray:
        placed: np.ndarray = (encoded - self.center_) @ self.projection_
        return placed

    def _process(self, points: np.ndarray, logs: np.ndarray) -> Process:
        constant = float(np.median(logs))
        # two matrices of all pairs are the memory that solving takes: one to keep, one to factorise
        places, pairs = points.astype(float), np.empty((2, len(points), len(points)))
        kernel = matern(places, places, (places**2).sum(axis=1), pairs)
        noise, diagonal = np.full(len(logs), self.noise), np.diag_indices_from(kernel)
        for reweighting in range(self.reweightings + 1):
            np.copyto(pairs[0], kernel)
            pairs[0][diagonal] = 1.0 + noise
            # a symmetric matrix is its own transpose, and that is how LAPACK wants it in place
            factor = cho_factor(pairs[0].T, lower=True, overwrite_a=True, check_finite=False)
            weights = cho_solve(factor, logs - constant)
            if reweighting < self.reweightings:
                noise = self.noise * np.maximum(1.0, np.abs(noise * weights) / self.huber)
        return Process(points, weights, constant)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        placed, tasks = self._placed(self.encoder_.transform(X)), task_labels(X, self.columns_)
        forecast = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            processes = self.processes_[self.targets_[index]]
            forecast[rows, index] = processes.get(task, processes[POOLED]).forecast(placed[rows])
        return forecast

    def _save(self, folder: Path) -> None:
        names = {target: list(processes) for target, processes in self.processes_.items()}
        write_json(folder / "gaussian_process.json", {"encoder": self.encoder_.to_state(), "processes": names})
        np.savez_compressed(folder / "distance.npz", center=self.center_, projection=self.projection_)
        for target, processes in enumerate(self.processes_.values()):
            for number, process in enumerate(processes.values()):
                np.savez_compressed(folder / f"process_{target}_{number}.npz", **vars(process))

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "gaussian_process.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        with np.load(folder / "distance.npz", allow_pickle=False) as arrays:
            self.center_, self.projection_ = arrays["center"], arrays["projection"]
        self.processes_ = {
            target: {name: _read(folder / f"process_{index}_{number}.npz") for number, name in enumerate(names)}
            for index, (target, names) in enumerate(state["processes"].items())
        }


def matern(asked: np.ndarray, points: np.ndarray, lengths: np.ndarray, scratch: np.ndarray) -> np.ndarray:
    """Return the Matern-3/2 kernel of every pair, in the memory of `scratch`.

    Coordinates are in units of the kernel's length over the root of 3; `lengths` are the squared ones of the points.
    Shapes: (n, k), (m, k), (m,), scratch (2, n, m) -> (n, m).
    """
    distance: np.ndarray
    kernel: np.ndarray
    distance, kernel = scratch
    np.matmul(-2.0 * asked, points.T, out=distance)
    distance += (asked**2).sum(axis=1)[:, None]
    distance += lengths
    # rounding makes the distance of two equal rows slightly negative
    np.maximum(distance, 0.0, out=distance)
    np.sqrt(distance, out=distance)
    np.negative(distance, out=kernel)
    np.exp(kernel, out=kernel)
    distance += 1.0
    kernel *= distance
    return kernel


def _read(path: Path) -> Process:
    with np.load(path, allow_pickle=False) as arrays:
        return Process(arrays["points"], arrays["weights"], float(arrays["constant"][()]))
