"""`roofline`: time as a sum of physical amounts, each at a fitted rate."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from perfcast.features.encoding.columns import numbers
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, fitted_by_group, groups_of, measured_rows, task_labels
from perfcast.schema.table import Column, Kind, Role, Tag, select
from perfcast.utils.io import read_json, write_json

_ROUNDS = 30
_SHARP = 0.01
"""Relative residuals below this count by their squares, larger ones by their size."""
_LEAST = 0.1
"""No forecast of a time is below this share of the shortest that training has."""


class RooflinePredictor(Predictor):
    """time = c_0 + sum over COST columns of c_j x_j with c_j >= 0, for every target and task.

    A coefficient is the inverse of the rate that the machine sustains (operations, bytes, waves per second), so the
    efficiencies are fitted and the form is physics: it may be asked about sizes far from any measured. Where a column
    is tagged WORK the target is a rate and its time is work / rate; else the target itself is what adds up. The sum of
    absolute relative errors is made small, by least squares of weighted rows, so that single disturbed rows and the
    longest times do not decide. A missing amount is the training median; a task never seen gets the law of all rows.
    Source: Williams, Waterman and Patterson, 2009, CACM 52(4), with phases that do not overlap, as in Stengel et al.,
    2015, ICS (ECM model); non-negative least squares by Lawson and Hanson, 1974.
    """

    medians_: dict[str, float]
    laws_: dict[str, dict[str, list[float]]]
    """By target and task: c_0, then one coefficient per COST column in the order of `medians_`."""
    least_: dict[str, float]
    """By target: the shortest time that is forecast."""
    usual_work_: float
    """The training median of what a rate counts, for a row where it is missing; 1 where targets are no rates."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.medians_ = {column.name: _median(numbers(X, column)) for column in self._amounts()}
        counted = select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.WORK)
        self.usual_work_ = (_median(numbers(X, counted[0])) if counted else 0.0) or 1.0
        amounts, tasks, work = self._design(X), task_labels(X, self.columns_), self._log_work(X)
        self.laws_, self.least_ = {}, {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            time = np.exp(log_y[:, index] if work is None else work - log_y[:, index])
            self.laws_[target] = fitted_by_group(groups_of(tasks, rows), partial(_law, amounts, time))
            self.least_[target] = _LEAST * float(time[rows].min())

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        amounts, tasks, work = self._design(X), task_labels(X, self.columns_), self._log_work(X)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            target = self.targets_[index]
            law = np.array(self.laws_[target].get(task, self.laws_[target][POOLED]))
            # row by row in one order, so that a row's sum is the same alone and among others
            time = np.log(np.maximum((amounts[rows] * law).sum(axis=1), self.least_[target]))
            logs[rows, index] = time if work is None else work[rows] - time
        return logs

    def _amounts(self) -> list[Column]:
        tagged = select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.COST)
        return [column for column in tagged if column.role is not Role.TARGET]

    def _design(self, X: pd.DataFrame) -> np.ndarray:
        """Return the amounts of every row, the first of them 1. Shapes: (n, 1 + COST columns)."""
        design = np.ones((len(X), 1 + len(self.medians_)))
        for place, column in enumerate(self._amounts(), 1):
            values = numbers(X, column)
            design[:, place] = np.where(values >= 0, values, self.medians_[column.name])
        return design

    def _log_work(self, X: pd.DataFrame) -> np.ndarray | None:
        """Return the logarithm of what a rate counts, None where targets are no rates. Shapes: (n,)."""
        tagged = select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.WORK)
        if not tagged:
            return None
        values = numbers(X, tagged[0])
        return np.log(np.where(values > 0, values, self.usual_work_))

    def _save(self, folder: Path) -> None:
        state = {"medians": self.medians_, "laws": self.laws_, "least": self.least_, "usual_work": self.usual_work_}
        write_json(folder / "roofline.json", state)

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "roofline.json")
        self.medians_ = {column.name: state["medians"][column.name] for column in self._amounts()}
        self.laws_, self.least_, self.usual_work_ = state["laws"], state["least"], state["usual_work"]


def _median(values: np.ndarray) -> float:
    known = values[values >= 0]
    return float(np.median(known)) if len(known) else 0.0


def _law(amounts: np.ndarray, time: np.ndarray, rows: np.ndarray) -> list[float]:
    """Return the coefficients of some rows. Shapes: amounts (n, p), time (n,), rows (n,) bool -> (p,)."""
    relative = amounts[rows] / time[rows, None]
    # amounts of all sizes: each is brought to a mean of 1, and one that is always 0 gets no part
    scale = relative.mean(axis=0)
    scale[scale == 0] = 1.0
    relative = relative / scale
    weight = np.ones(len(relative))
    for _ in range(_ROUNDS):
        found, _ = nnls(relative * np.sqrt(weight)[:, None], np.sqrt(weight))
        weight = 1 / np.maximum(np.abs(relative @ found - 1), _SHARP)
    return [float(value) for value in found / scale]
