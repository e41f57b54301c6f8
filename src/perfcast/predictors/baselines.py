"""Baselines: the nearest measured machine, and a product of powers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns, numbers
from perfcast.features.encoding.dense import LinearEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, joined_labels, measured_rows, task_labels
from perfcast.schema.table import Column, Kind, Role, Tag, select
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_arrays, read_state

_BLOCK = 1024
"""Rows of one block of distances, which bounds the memory."""

_ROUNDING = 1e-12
"""Share of the squared sizes of two rows by which the rounding of their squared distance may differ."""

_EXPONENT_DECIMALS = 6
"""Decimals of the exponents: the last bits of what a search finds are those of the processor."""

Powers = dict[str, float]
"""Constant (key "") and one exponent per SCALING column."""


@dataclass(kw_only=True, eq=False, repr=False)
class NearestPredictor(Predictor):
    """Median of the training rows of the same task and identity, else of the nearest such machine of the task.

    A machine is all training rows equal on the TASK and IDENTITY columns (on every feature where a dataset tags no
    IDENTITY). Near is the Euclidean distance of standardized features (logarithms where positive) to the machine's
    mean, with categorical columns as `LinearEncoder` encodes them. For a task that training did not have, the machines
    of all tasks are compared.
    """

    encoder_: LinearEncoder = field(init=False)
    keys_: list[str] = field(init=False)
    tasks_: np.ndarray = field(init=False)
    centers_: np.ndarray = field(init=False)
    medians_: np.ndarray = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        keys = self._keys(X)
        tasks = task_labels(X, self.columns_)
        self.encoder_ = LinearEncoder().fit(X, feature_columns(self.columns_))
        # A row of unknown identity is a separate machine, which only the distance can select.
        named = np.where(pd.isna(keys), [f"\x1e{position}" for position in range(len(keys))], keys)
        distinct, first, machine = np.unique(named.astype(str), return_index=True, return_inverse=True)
        self.keys_ = [str(key) for key in distinct]
        self.tasks_ = tasks[first]
        self.centers_ = pd.DataFrame(self.encoder_.transform(X)).groupby(machine).mean().to_numpy()
        self.medians_ = pd.DataFrame(log_y).groupby(machine).median().to_numpy()

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        position = {key: index for index, key in enumerate(self.keys_)}
        machine = np.array([position.get(key, -1) for key in self._keys(X)])
        logs = np.where((machine >= 0)[:, None], self.medians_[machine], np.nan)
        outputs = list(self._outputs(task_labels(X, self.columns_)))
        is_open = np.zeros(len(X), dtype=bool)
        for target, _, rows in outputs:
            is_open[rows] |= np.isnan(logs[rows, target])
        encoded = np.full((len(X), self.centers_.shape[1]), np.nan)
        if is_open.any():
            encoded[is_open] = self.encoder_.transform(X[is_open])
        # The targets of one task mostly have the same machines, so the same one is nearest.
        nearest: dict[tuple[bytes, bytes], np.ndarray] = {}
        for target, task, rows in outputs:
            unknown = rows[np.isnan(logs[rows, target])]
            measured = ~np.isnan(self.medians_[:, target])
            among = np.flatnonzero(measured & (self.tasks_ == task))
            among = among if len(among) else np.flatnonzero(measured)
            key = (unknown.tobytes(), among.tobytes())
            if key not in nearest:
                nearest[key] = among[self._nearest(encoded[unknown], among)]
            logs[unknown, target] = self.medians_[nearest[key], target]
        return logs

    def _nearest(self, encoded: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Return the position in `among` of the machine nearest to each row. Shapes: (n, columns) -> (n,) int.

        Squared distances are sums of products, which one matrix product gives ten times faster than differences. Equal
        distances then differ in their last bits, so that nearly equal ones count as equal: the first machine wins.
        """
        centers = self.centers_[among]
        sizes = (centers**2).sum(axis=1)
        turned = -2 * centers.T
        nearest = np.empty(len(encoded), dtype=int)
        for start in range(0, len(encoded), _BLOCK):
            rows = encoded[start : start + _BLOCK]
            apart = rows @ turned
            apart += sizes  # in place: a block is larger than the caches
            margin = _ROUNDING * (sizes.max() + (rows**2).sum(axis=1))
            nearest[start : start + _BLOCK] = (apart <= (apart.min(axis=1) + margin)[:, None]).argmax(axis=1)
        return nearest

    def _keys(self, X: pd.DataFrame) -> np.ndarray:
        usable = [column for column in self.columns_ if column.role is not Role.TARGET]
        identity: list[Column] = [column for column in usable if Tag.IDENTITY in column.tags]
        identity = identity or list(feature_columns(self.columns_))
        return joined_labels(X, [*[column for column in usable if Tag.TASK in column.tags], *identity])

    def _save(self, folder: Path) -> None:
        state = {"encoder": self.encoder_.to_state(), "keys": self.keys_, "tasks": self.tasks_.tolist()}
        write_json(folder / "machines.json", state)
        np.save(folder / "centers.npy", self.centers_, allow_pickle=False)
        np.save(folder / "medians.npy", self.medians_, allow_pickle=False)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "machines.json")
        self.encoder_ = LinearEncoder.from_state(state["encoder"], feature_columns(self.columns_))
        self.keys_ = state["keys"]
        self.tasks_ = np.array(state["tasks"], dtype=object)
        self.centers_ = read_arrays(folder / "centers.npy")[""]
        self.medians_ = read_arrays(folder / "medians.npy")[""]


@dataclass(kw_only=True, eq=False, repr=False)
class PowerLawPredictor(Predictor):
    """log y = a_task + sum over SCALING columns of e_task,k log x_k, fitted by least squares with 0 <= e <= 1.

    An exponent of 1 is perfect scaling with a quantity and 0 none; more of a SCALING quantity never lowers the
    prediction. A missing or non-positive quantity is the training median. A task that training did not have gets the
    exponents of all rows. `shrinkage` moves exponents that the rows do not determine to 0; it is the weight of one more
    row per exponent. With `columns`, only these SCALING columns count.
    """

    reads_tags_only: ClassVar[bool] = True

    shrinkage: float = 1e-3
    columns: Sequence[str] | None = None

    medians_: dict[str, float] = field(init=False)
    powers_: dict[str, dict[str, Powers]] = field(init=False)
    """Constant and exponents by target and task."""
    pooled_: dict[str, Powers] = field(init=False)
    """Constant and exponents of all rows by target."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.medians_ = {}
        for column in self._scaling():
            values = numbers(X, column)
            positive = values[values > 0]
            self.medians_[column.name] = float(np.median(positive)) if len(positive) else 1.0
        logs = self._logs(X)
        tasks = task_labels(X, self.columns_)
        self.powers_ = {}
        self.pooled_ = {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            self.pooled_[target] = self._fit_powers(logs[rows], log_y[rows, index])
            self.powers_[target] = {
                str(task): self._fit_powers(logs[rows & (tasks == task)], log_y[rows & (tasks == task), index])
                for task in np.unique(tasks[rows].astype(str))
            }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = self._logs(X)
        tasks = task_labels(X, self.columns_)

        def apply(powers: Powers, rows: np.ndarray) -> np.ndarray:
            exponents = np.array([powers[name] for name in self.medians_])
            return np.asarray(powers[""] + (logs[rows] * exponents).sum(axis=1))

        models = {target: {**self.powers_[target], POOLED: pooled} for target, pooled in self.pooled_.items()}
        return self._apply_models(tasks, models, apply)

    def _fit_powers(self, logs: np.ndarray, log_y: np.ndarray) -> Powers:
        from scipy.optimize import lsq_linear

        center = logs.mean(axis=0)
        constant = float(log_y.mean())
        count = logs.shape[1]
        exponents = np.zeros(count)
        if count:
            design = np.vstack([logs - center, np.sqrt(self.shrinkage) * np.eye(count)])
            aims = np.concatenate([log_y - constant, np.zeros(count)])
            solution = lsq_linear(design, aims, bounds=(0.0, 1.0), method="bvls").x
            exponents = np.clip(solution, 0.0, 1.0).round(_EXPONENT_DECIMALS)
        powers = {name: float(exponent) for name, exponent in zip(self.medians_, exponents, strict=True)}
        return {"": constant - float((center * exponents).sum()), **powers}

    def _scaling(self) -> list[Column]:
        tagged = select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.SCALING)
        named = [column for column in tagged if self.columns is None or column.name in self.columns]
        return [column for column in named if column.role is not Role.TARGET]

    def _logs(self, X: pd.DataFrame) -> np.ndarray:
        logs = np.empty((len(X), len(self.medians_)))
        for index, column in enumerate(self._scaling()):
            values = numbers(X, column)
            logs[:, index] = np.log(np.where(values > 0, values, self.medians_[column.name]))
        return logs
