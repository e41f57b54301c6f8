"""The scaling law: performance as a product of powers of a few physical quantities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear

from perfcast.encoding.dense import numbers
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import measured_rows, task_labels
from perfcast.predictors.base import Predictor
from perfcast.schema import Column, Kind, Role, Tag, select

Law = dict[str, float]
"""Constant (key "") and one exponent per SCALING column."""


class PhysicalPredictor(Predictor):
    """log y = a_task + sum over SCALING columns of e_task,k log x_k, fitted by least squares with 0 <= e <= 1.

    An exponent of 1 is perfect scaling with a quantity and 0 none; more of a SCALING quantity never lowers the
    forecast. A missing or non-positive quantity is the training median. A task never seen gets the law of all rows.
    `shrinkage` pulls exponents that the rows do not determine to 0; it is the weight of one more row per exponent.
    """

    medians_: dict[str, float]
    laws_: dict[str, dict[str, Law]]
    pooled_: dict[str, Law]

    def __init__(self, shrinkage: float = 1e-3) -> None:
        self.shrinkage = shrinkage

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        self.medians_ = {}
        for column in self._scaling():
            values = numbers(X, column)
            positive = values[values > 0]
            self.medians_[column.name] = float(np.median(positive)) if len(positive) else 1.0
        logs, tasks = self._logs(X), task_labels(X, self.columns_)
        self.laws_, self.pooled_ = {}, {}
        for index, (target, rows) in enumerate(zip(self.targets_, measured_rows(log_y, self.targets_), strict=True)):
            self.pooled_[target] = self._law(logs[rows], log_y[rows, index])
            self.laws_[target] = {
                str(task): self._law(logs[rows & (tasks == task)], log_y[rows & (tasks == task), index])
                for task in np.unique(tasks[rows].astype(str))
            }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs, tasks = self._logs(X), task_labels(X, self.columns_)
        forecast = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._questions(tasks):
            target = self.targets_[index]
            law = self.laws_[target].get(task, self.pooled_[target])
            exponents = np.array([law[name] for name in self.medians_])
            forecast[rows, index] = law[""] + (logs[rows] * exponents).sum(axis=1)
        return forecast

    def _law(self, logs: np.ndarray, log_y: np.ndarray) -> Law:
        centre, constant = logs.mean(axis=0), float(log_y.mean())
        count = logs.shape[1]
        exponents = np.zeros(count)
        if count:
            design = np.vstack([logs - centre, np.sqrt(self.shrinkage) * np.eye(count)])
            wanted = np.concatenate([log_y - constant, np.zeros(count)])
            exponents = np.clip(lsq_linear(design, wanted, bounds=(0.0, 1.0), method="bvls").x, 0.0, 1.0)
        law = {name: float(exponent) for name, exponent in zip(self.medians_, exponents, strict=True)}
        return {"": constant - float((centre * exponents).sum()), **law}

    def _scaling(self) -> list[Column]:
        tagged = select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.SCALING)
        return [column for column in tagged if column.role is not Role.TARGET]

    def _logs(self, X: pd.DataFrame) -> np.ndarray:
        logs = np.empty((len(X), len(self.medians_)))
        for index, column in enumerate(self._scaling()):
            values = numbers(X, column)
            logs[:, index] = np.log(np.where(values > 0, values, self.medians_[column.name]))
        return logs

    def _save(self, folder: Path) -> None:
        write_json(folder / "law.json", {"medians": self.medians_, "laws": self.laws_, "pooled": self.pooled_})

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "law.json")
        self.medians_ = {column.name: state["medians"][column.name] for column in self._scaling()}
        self.laws_, self.pooled_ = state["laws"], state["pooled"]
