"""Support vector regression of log targets with a radial kernel, one machine per task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.svm import SVR

from perfcast.encoding.dense import LinearEncoder, feature_columns
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import POOLED, choice_split, groups_of, measured_rows, task_labels
from perfcast.predictors.base import Predictor

_BLOCK = 1024
"""Rows forecast at once, which bounds the memory for the kernel."""


@dataclass(frozen=True)
class Machine:
    """One fitted machine: constant + sum over support vectors v of coefficient exp(-gamma |x - v|^2).

    Shapes: vectors (m, columns), coefficients (m,), in natural logarithms of the target.
    """

    vectors: np.ndarray
    coefficients: np.ndarray
    constant: float
    gamma: float

    def forecast(self, encoded: np.ndarray) -> np.ndarray:
        """Return log targets. Shapes: (n, columns) -> (n,)."""
        answer = np.empty(len(encoded))
        for start in range(0, len(encoded), _BLOCK):
            # Every distance by itself: a matrix product may round differently for one row than for many.
            squared = cdist(encoded[start : start + _BLOCK], self.vectors, "sqeuclidean")
            weighted = np.exp(-self.gamma * squared) * self.coefficients
            answer[start : start + _BLOCK] = self.constant + weighted.sum(axis=1)
        return answer


class SvmPredictor(Predictor):
    """Epsilon-insensitive support vector regression with a radial kernel, separately for every task.

    Features as `LinearEncoder` gives them: standardised numbers, categories 0 or 1. Solving takes more than linear time
    in the rows, so each machine learns from at most `rows` of them, drawn at random. `epsilon` is the deviation that
    costs nothing and `costs` are candidates for C, both with the log target standardised; `widths` are candidates for
    the kernel's gamma, in units of one over the columns' summed variance. The pair with the smallest mean absolute log
    error on the task's `valid` rows is used, `default_cost` and `default_width` where there are none; the machine is
    then fitted to a draw from all training rows. A task never seen gets the machine of all rows.

    It does not extrapolate: far from the rows it learned every kernel value goes to 0 and the forecast to a constant.
    Source: Drucker et al., 1996, Support vector regression machines, NeurIPS 9; Smola and Schoelkopf, 2004, Statistics
    and Computing 14(3).
    """

    encoder_: LinearEncoder
    machines_: dict[str, dict[str, Machine]]

    def __init__(
        self,
        *,
        rows: int = 3000,
        costs: Sequence[float] = (1.0, 10.0),
        widths: Sequence[float] = (0.05, 0.2, 1.0),
        default_cost: float = 10.0,
        default_width: float = 0.2,
        epsilon: float = 0.02,
        min_count: int = 20,
        clip: float = 1.0,
        random_state: int = 0,
    ) -> None:
        self.rows = rows
        self.costs = costs
        self.widths = widths
        self.default_cost = default_cost
        self.default_width = default_width
        self.epsilon = epsilon
        self.min_count = min_count
        self.clip = clip
        self.random_state = random_state

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        self.encoder_ = LinearEncoder(min_count=self.min_count, clip=self.clip).fit(X, feature_columns(self.columns_))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        rng = np.random.default_rng(self.random_state)
        self.machines_ = {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            self.machines_[target] = {}
            for name, group in groups_of(tasks, rows).items():
                cost, width = self._choose(encoded, log_y[:, index], group, valid, rng)
                drawn = self._draw(group, rng)
                machine = self._machines(encoded[drawn], log_y[drawn, index], [cost], [width])[0]
                self.machines_[target][name] = machine

    def _choose(
        self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, valid: np.ndarray, rng: np.random.Generator
    ) -> tuple[float, float]:
        parts = choice_split(rows, valid)
        if parts is None:
            return self.default_cost, self.default_width
        fitting, choosing = (self._draw(part, rng) for part in parts)
        pairs = [(cost, width) for width in self.widths for cost in self.costs]
        machines = self._machines(encoded[fitting], log_y[fitting], self.costs, self.widths)
        errors = [np.abs(machine.forecast(encoded[choosing]) - log_y[choosing]).mean() for machine in machines]
        return pairs[int(np.argmin(errors))]

    def _draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        positions = np.flatnonzero(rows)
        if len(positions) <= self.rows:
            return positions
        return np.sort(rng.choice(positions, self.rows, replace=False))

    def _machines(
        self, encoded: np.ndarray, log_y: np.ndarray, costs: Sequence[float], widths: Sequence[float]
    ) -> list[Machine]:
        """Return one machine per pair, width by width; they share the distances. Shapes: (n, columns), (n,)."""
        spread, centre = float(log_y.std()) or 1.0, float(log_y.mean())
        unit = float(encoded.var(axis=0).sum()) or 1.0
        lengths = (encoded**2).sum(axis=1)
        # Rounding makes the distance of two equal rows slightly negative.
        squared = np.maximum(lengths[:, None] + lengths - 2 * encoded @ encoded.T, 0.0)
        machines = []
        for width in widths:
            kernel = np.exp(-width / unit * squared)
            for cost in costs:
                solved = SVR(kernel="precomputed", C=cost, epsilon=self.epsilon).fit(kernel, (log_y - centre) / spread)
                machines.append(
                    Machine(
                        encoded[solved.support_],
                        spread * solved.dual_coef_[0],
                        centre + spread * float(solved.intercept_[0]),
                        width / unit,
                    )
                )
        return machines

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        forecast = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._questions(tasks):
            machines = self.machines_[self.targets_[index]]
            forecast[rows, index] = machines.get(task, machines[POOLED]).forecast(encoded[rows])
        return forecast

    def _save(self, folder: Path) -> None:
        names = {target: list(machines) for target, machines in self.machines_.items()}
        write_json(folder / "svm.json", {"encoder": self.encoder_.to_state(), "machines": names})
        for target, machines in enumerate(self.machines_.values()):
            for number, machine in enumerate(machines.values()):
                np.savez_compressed(folder / f"machine_{target}_{number}.npz", **vars(machine))

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "svm.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        self.machines_ = {
            target: {
                name: _read(folder / f"machine_{self.targets_.index(target)}_{number}.npz")
                for number, name in enumerate(names)
            }
            for target, names in state["machines"].items()
        }


def _read(path: Path) -> Machine:
    with np.load(path, allow_pickle=False) as arrays:
        return Machine(
            arrays["vectors"], arrays["coefficients"], float(arrays["constant"][()]), float(arrays["gamma"][()])
        )
