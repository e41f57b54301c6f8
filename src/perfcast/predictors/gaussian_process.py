"""Gaussian process regression of log targets, one process per task, with ARD length scales that all tasks share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, fitted_by_group, groups_of, measured_rows, task_labels
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_arrays, read_models, read_state, write_models

if TYPE_CHECKING:
    from torch import Tensor

_MIN_SAMPLES = 10
"""Outputs with fewer rows do not count in the fit of the length scales."""

_INITIAL_NOISE = 0.01
_INITIAL_LENGTH = 1.6
"""In units of a typical distance of two rows."""

_LOG_LENGTH_DIGITS = 2
"""Digits of the logarithms of fitted length scales. Steps of 1 % change no error that is seen, and absorb how libraries
of another processor round: all else follows from the scales in closed form."""

_MIN_VARIANCE_SHARE = 1e-9
"""Least variance of a direction, as a share of the largest one."""

_BLOCK = 16
"""Rows of one block of a prediction. Their kernel stays in a core's cache, which halves the time. The size is
fixed: a product of another shape rounds differently, and a prediction must not depend on the number of rows."""


@dataclass(frozen=True)
class OutputSample:
    """Rows and standardized log targets of one output (a target of a task). Shapes: (m,) int, (m,)."""

    rows: np.ndarray
    values: np.ndarray

    @classmethod
    def standardize(cls, rows: np.ndarray, logs: np.ndarray) -> OutputSample | None:
        """Standardize log targets; None where they are too few or all equal. Shapes: rows (m,) int, logs (m,)."""
        spread = float(logs.std())
        if len(rows) < _MIN_SAMPLES or not spread > 1e-9:
            return None
        return cls(rows, (logs - logs.mean()) / spread)


def fit_inverse_length_scales(
    inputs: np.ndarray,
    variables: Sequence[str],
    outputs: Sequence[OutputSample],
    *,
    steps: int,
    batch_size: int,
    seed: int,
) -> np.ndarray:
    """Return the inverse length scale of every input.

    Automatic relevance determination (ARD): the length scales maximize the marginal likelihood of Matern-3/2 processes.
    All outputs share one length scale per variable and have a noise each. Every step of Adam reads `batch_size` random
    rows of the next output. It computes in doubles: a gradient of zero would be noise in single precision, and Adam
    takes steps of full size along noise.
    Shapes: inputs (n, columns), variables (columns,) -> (columns,).
    Source: Rasmussen and Williams, 2006, Gaussian Processes for Machine Learning, equations 4.17 and 5.8, section 5.1.
    """
    import torch  # an installed champion predicts without it

    from perfcast.training.loop import reproducible

    spread = float(np.sqrt(inputs.var(axis=0).sum())) or 1.0
    start = np.full(inputs.shape[1], 1.0 / (_INITIAL_LENGTH * spread))
    if not outputs or not inputs.shape[1]:
        return start
    names = sorted(set(variables))
    variable = torch.tensor([names.index(name) for name in variables])
    with reproducible(seed):
        log_factors = torch.zeros(len(names), dtype=torch.float64, requires_grad=True)
        log_noise = torch.full((len(outputs),), float(np.log(_INITIAL_NOISE)), dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([log_factors, log_noise], lr=0.1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
        rng = np.random.default_rng(seed)
        scaled = inputs * start
        for step in range(steps):
            number = step % len(outputs)
            output = outputs[number]
            drawn = rng.choice(len(output.rows), min(batch_size, len(output.rows)), replace=False)
            points = torch.from_numpy(scaled[output.rows[drawn]]) * torch.exp(log_factors)[variable]
            loss = _negative_log_likelihood(points, torch.from_numpy(output.values[drawn]), log_noise[number])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        fitted = log_factors[variable].detach().numpy().round(_LOG_LENGTH_DIGITS)
    return np.asarray(start * np.exp(fitted))


def _negative_log_likelihood(points: Tensor, values: Tensor, log_noise: Tensor) -> Tensor:
    """Return the negative logarithm of the marginal likelihood per row, under the best variance of the process.

    Shapes: points (m, columns), values (m,) -> ().
    """
    import torch

    norms = (points * points).sum(dim=1)
    squared = norms[:, None] + norms - 2.0 * points @ points.T
    # The gradient of a root at zero is infinite.
    distance = torch.sqrt(3.0 * torch.clamp(squared, min=1e-7))
    kernel = (1.0 + distance) * torch.exp(-distance)
    noisy = kernel + torch.exp(log_noise) * torch.eye(len(points), dtype=torch.float64)
    factor = torch.linalg.cholesky(noisy)
    weights = torch.cholesky_solve(values[:, None], factor)[:, 0]
    variance = (values @ weights) / len(points)
    loss: Tensor = 0.5 * torch.log(variance) + torch.log(torch.diagonal(factor)).mean()
    return loss


@dataclass(frozen=True)
class FittedProcess:
    """Posterior mean of one process: constant + sum over points p of weight x kernel(x, p).

    Shapes: points (m, components), weights (m,), in natural logarithms of the target.
    """

    points: np.ndarray
    weights: np.ndarray
    constant: float

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Return log targets. Shapes: (n, components) -> (n,)."""
        logs = np.empty(len(inputs))
        block = np.zeros((_BLOCK, inputs.shape[1]))
        scratch = np.empty((2, _BLOCK, len(self.weights)))
        norms = (self.points**2).sum(axis=1)
        for start in range(0, len(inputs), _BLOCK):
            rows = inputs[start : start + _BLOCK]
            block[: len(rows)] = rows
            kernel = matern_kernel(block, self.points, norms, scratch)
            logs[start : start + _BLOCK] = (kernel @ self.weights)[: len(rows)]
        return self.constant + logs


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianProcessPredictor(Predictor):
    """Mean of a Gaussian process with a Matern-3/2 kernel, separately for every task.

    Columns are encoded by `LinearEncoder`: standardized numbers, categories 0 or 1. Their ARD length scales are fitted
    once for all tasks (`fit_inverse_length_scales`), in `length_scale_steps` steps of `length_scale_batch_size` rows.
    Distances are taken in the `n_components` directions in which the scaled columns vary most, at most in all in which
    they vary.

    `noise` is the variance of a measurement in units of the process's own. It is fixed, because a fitted noise depends
    mostly on a few outliers. Instead, `n_reweightings` rounds of reweighted least squares apply Huber's loss, which is
    linear beyond a deviation of `huber_delta` (a natural logarithm). A fit takes cubic time in the rows. A process
    therefore learns from at most `max_samples` random rows. The process of all rows, for tasks that training did not
    have, learns from `max_pooled_samples`.

    It does not extrapolate: far from the training rows the prediction is their median.
    Source: Rasmussen and Williams, 2006, Gaussian Processes for Machine Learning, algorithm 2.1; Huber, 1964, Annals of
    Mathematical Statistics 35(1).
    """

    max_samples: int = 10_000
    max_pooled_samples: int = 2000
    noise: float = 0.01
    huber_delta: float = 0.01
    n_reweightings: int = 2
    length_scale_batch_size: int = 1000
    length_scale_steps: int = 120
    n_components: int = 160
    min_count: int = 20
    clip: float = 0.25
    random_state: int = 0

    encoder_: LinearEncoder = field(init=False)
    center_: np.ndarray = field(init=False)
    projection_: np.ndarray = field(init=False)
    """Encoded columns less `center_` to coordinates of `matern_kernel`. Shape: (columns, components)."""
    processes_: dict[str, dict[str, FittedProcess]] = field(init=False)
    """Process by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.encoder_ = LinearEncoder(min_count=self.min_count, clip=self.clip).fit(X, feature_columns(self.columns_))
        encoded = self.encoder_.transform(X)
        tasks = task_labels(X, self.columns_)
        groups = [groups_of(tasks, rows) for rows in measured_rows(log_y, self.targets_)]
        self._fit_projection(encoded, log_y, groups)
        points = self._project(encoded)
        rng = np.random.default_rng(self.random_state)

        def fit(index: int, rows: np.ndarray) -> FittedProcess:
            limit = self.max_pooled_samples if rows is groups[index][POOLED] else self.max_samples
            drawn = np.flatnonzero(rows)
            if len(drawn) > limit:
                drawn = np.sort(rng.choice(drawn, limit, replace=False))
            return self._fit_process(points[drawn], log_y[drawn, index])

        self.processes_ = {
            target: fitted_by_group(groups[index], partial(fit, index)) for index, target in enumerate(self.targets_)
        }

    def _fit_projection(self, encoded: np.ndarray, log_y: np.ndarray, groups: list[dict[str, np.ndarray]]) -> None:
        outputs = [
            OutputSample.standardize(np.flatnonzero(rows), log_y[rows, index])
            for index, by_task in enumerate(groups)
            for task, rows in by_task.items()
            if task != POOLED
        ]
        scales = fit_inverse_length_scales(
            encoded,
            self.encoder_.variables_,
            [output for output in outputs if output is not None],
            steps=self.length_scale_steps,
            batch_size=self.length_scale_batch_size,
            seed=self.random_state,
        )
        self.center_ = encoded.mean(axis=0)
        scaled = (encoded - self.center_) * scales
        variances, directions = np.linalg.eigh(scaled.T @ scaled)
        # without variance, any directions are as good as others: the processor's rounding would choose
        varied = directions[:, variances > _MIN_VARIANCE_SHARE * variances.max(initial=0.0)]
        self.projection_ = np.sqrt(3.0) * scales[:, None] * varied[:, ::-1][:, : self.n_components]

    def _project(self, encoded: np.ndarray) -> np.ndarray:
        return np.asarray((encoded - self.center_) @ self.projection_)

    def _fit_process(self, points: np.ndarray, logs: np.ndarray) -> FittedProcess:
        constant = float(np.median(logs))
        # Memory for two matrices of all pairs: the kernel, and a copy that is factorized in place.
        pairs = np.empty((2, len(points), len(points)))
        kernel = matern_kernel(points, points, (points**2).sum(axis=1), pairs)
        noise = np.full(len(logs), self.noise)
        diagonal = np.diag_indices_from(kernel)
        for reweighting in range(self.n_reweightings + 1):
            np.copyto(pairs[0], kernel)
            pairs[0][diagonal] = 1.0 + noise
            # LAPACK factorizes in place only in column order, which the transpose of a symmetric matrix has.
            factor = cho_factor(pairs[0].T, lower=True, overwrite_a=True, check_finite=False)
            weights = cho_solve(factor, logs - constant)
            if reweighting < self.n_reweightings:
                noise = self.noise * np.maximum(1.0, np.abs(noise * weights) / self.huber_delta)
        return FittedProcess(points, weights, constant)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        points = self._project(self.encoder_.transform(X))
        tasks = task_labels(X, self.columns_)
        return self._apply_models(tasks, self.processes_, lambda process, rows: process.predict(points[rows]))

    def _save(self, folder: Path) -> None:
        names = {target: list(processes) for target, processes in self.processes_.items()}
        write_json(folder / "gaussian_process.json", {"encoder": self.encoder_.to_state(), "processes": names})
        np.savez_compressed(folder / "projection.npz", center=self.center_, projection=self.projection_)
        write_models(folder, "process", self.processes_)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "gaussian_process.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        arrays = read_arrays(folder / "projection.npz")
        self.center_ = arrays["center"]
        self.projection_ = arrays["projection"]
        names = {target: state["processes"][target] for target in self.targets_}
        self.processes_ = read_models(folder, "process", names, FittedProcess)


def matern_kernel(inputs: np.ndarray, points: np.ndarray, norms: np.ndarray, scratch: np.ndarray) -> np.ndarray:
    """Return the Matern-3/2 kernel of every pair, in the memory of `scratch`.

    Coordinates are in units of the kernel's length over the root of 3; `norms` are the squared norms of the points.
    Shapes: (n, k), (m, k), (m,), scratch (2, n, m) -> (n, m).
    """
    distance: np.ndarray
    kernel: np.ndarray
    distance, kernel = scratch
    np.matmul(-2.0 * inputs, points.T, out=distance)
    distance += (inputs**2).sum(axis=1)[:, None]
    distance += norms
    # Rounding makes the distance of two equal rows slightly negative.
    np.maximum(distance, 0.0, out=distance)
    np.sqrt(distance, out=distance)
    np.negative(distance, out=kernel)
    np.exp(kernel, out=kernel)
    distance += 1.0
    kernel *= distance
    return kernel
