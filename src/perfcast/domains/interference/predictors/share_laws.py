"""Lookups and laws of few numbers: medians of entities, shares of resources, and idle time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.interference.features.alone_ratios import USE, WORK
from perfcast.domains.interference.features.resource_shares import CORE, IDLE, SCHEDSTAT, STALLS, UNSTALLED_RUN
from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors import task_rows
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, Tag

MIN_SHARE = 0.01
"""Prediction for a victim that had nothing of its resource."""
THRESHOLDS = (-1.0, 0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 2.0)
"""Idle shares above which a victim may count as one that keeps up: from every victim to none."""
MIN_ROWS = 30
"""Training rows of a task below which it has the threshold of all tasks."""

Rule = tuple[float, str]
"""Threshold of the idle share, and the column of the share of a victim below it."""
Medians = dict[str, dict[str, float]]
"""Medians of the logarithms by task and entity; under POOLED those of all."""


@dataclass(kw_only=True, eq=False, repr=False)
class EntityMedianPredictor(Predictor):
    """Median of the training rows of the same task and ENTITY, else of the task, else of all rows."""

    reads_tags_only: ClassVar[bool] = True

    medians_: list[Medians] = field(init=False)
    """By target."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        tasks, entities, self.medians_ = task_rows.task_labels(X, self.columns_), self._entities(X), []
        for index, rows in enumerate(task_rows.measured_rows(log_y, self.targets_)):
            logs = log_y[:, index]

            def by_entity(mask: np.ndarray, logs: np.ndarray = logs) -> dict[str, float]:
                def median(inner: np.ndarray) -> float:
                    return float(np.median(logs[inner]))

                return task_rows.fitted_by_group(task_rows.groups_of(entities, mask), median)

            self.medians_.append(task_rows.fitted_by_group(task_rows.groups_of(tasks, rows), by_entity))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        entities = self._entities(X)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(task_rows.task_labels(X, self.columns_)):
            of_task = self.medians_[index].get(task, self.medians_[index][task_rows.POOLED])
            logs[rows, index] = [of_task.get(entity, of_task[task_rows.POOLED]) for entity in entities[rows]]
        return logs

    def _entities(self, X: pd.DataFrame) -> np.ndarray:
        tagged = [column for column in self.columns_ if Tag.ENTITY in column.tags and column.role is not Role.TARGET]
        labels = task_rows.joined_labels(X, tagged)
        return np.where(pd.isna(labels), "", labels)


@dataclass(kw_only=True, eq=False, repr=False)
class ShareLawPredictor(Predictor):
    """share of alone = product of resource shares, which are columns between 0 and 1.

    Nothing is fitted. Missing shares count as 1; a row without any gets the training median of its task.
    """

    reads_tags_only: ClassVar[bool] = True
    shares: ClassVar[tuple[str, ...]]
    """Columns of the product; the first one of each tuple that the table has."""

    medians_: dict[str, dict[str, float]] = field(init=False)
    """Median of the logarithms by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.medians_ = task_rows.task_medians(task_rows.task_labels(X, self.columns_), log_y, self.targets_)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        shares = number_matrix(X, self._share_columns())
        known = ~np.isnan(shares).all(axis=1)
        product = np.log(np.clip(np.where(np.isnan(shares), 1.0, shares).prod(axis=1), MIN_SHARE, None))
        tasks = task_rows.task_labels(X, self.columns_)
        return self._apply_models(tasks, self.medians_, lambda each, rows: np.where(known[rows], product[rows], each))

    def _share_columns(self) -> list[Column]:
        declared = {column.name: column for column in self.columns_ if column.role is Role.FEATURE}
        present = (declared.get(name) for name in self.shares)
        return [column for column in present if column is not None and column.kind is Kind.NUMERICAL]


class CoreSharePredictor(ShareLawPredictor):
    """share of alone = cores / (1 + neighbors), at most 1: what is known without any counter."""

    shares = (CORE,)


class SchedstatPredictor(ShareLawPredictor):
    """share of alone = time on a processor / (that + time ready without one), from the victim's schedstat.

    Source: Linux, Documentation/scheduler/sched-stats.rst.
    """

    shares = (SCHEDSTAT,)


class UseOfAlonePredictor(ShareLawPredictor):
    """share of alone = processor time of the victim now / alone: for tenants that the host has seen alone."""

    shares = (USE,)


class WorkOfAlonePredictor(ShareLawPredictor):
    """share of alone = read and write calls now / alone where the victim makes enough, else processor time now / alone.

    Source: Denning and Buzen, 1978, The Operational Analysis of Queueing Network Models, ACM Computing Surveys 10(3).
    """

    shares = (WORK,)


class PressureStallPredictor(ShareLawPredictor):
    """share of alone = product over processor, memory and disks of 1 - the victim's stall time.

    Of the victim's control group; of the machine where groups have none.
    Source: Linux, Documentation/accounting/psi.rst.
    """

    shares = tuple(STALLS)

    def _share_columns(self) -> list[Column]:
        present = super()._share_columns()
        of_victim = [column for column in present if column.name.startswith("victim_")]
        return of_victim or present


@dataclass(kw_only=True, eq=False, repr=False)
class IdleTimePredictor(ShareLawPredictor):
    """share of alone = 1 where the victim is idle for more than a threshold, else the time it ran of that it wanted.

    A workload that still rests, because its requests come at a rate of their own, has done all its work, however long
    each request waited. One that never rests lost the time in which it waited. Two numbers per task are fitted by the
    least absolute error of the share: the threshold, and which of two columns tells the waiting.
    Source: the utilization law of operational analysis, throughput = utilization / demand per operation (Denning and
    Buzen, 1978, ACM Computing Surveys 10(3)).
    """

    shares: ClassVar[tuple[str, ...]] = (IDLE, UNSTALLED_RUN, SCHEDSTAT)

    rules_: dict[str, dict[str, Rule]] = field(init=False)
    """By target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        super()._fit(X, log_y, validation)
        self.rules_ = {}
        values = self._read(X)
        busy = [name for name in (UNSTALLED_RUN, SCHEDSTAT) if name in values]
        if IDLE not in values or not busy:
            return
        tasks = task_rows.task_labels(X, self.columns_)
        for index, target in enumerate(self.targets_):
            known = ~np.isnan(log_y[:, index])
            groups = {
                task_rows.POOLED: known,
                **{task: known & (tasks == task) for task in sorted(set(tasks.tolist()))},
            }
            y = np.exp(log_y[:, index])
            self.rules_[target] = {
                task: _best_rule(values, busy, rows, y)
                for task, rows in groups.items()
                if rows.sum() >= MIN_ROWS or task == task_rows.POOLED
            }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        if not self.rules_:
            return super()._predict(X)
        values = self._read(X)

        def apply(rule: tuple[float, str], rows: np.ndarray) -> np.ndarray:
            threshold, name = rule
            share = _apply(values[IDLE][rows], values[name][rows], threshold)
            return np.asarray(np.log(np.clip(share, MIN_SHARE, None)))

        return self._apply_models(task_rows.task_labels(X, self.columns_), self.rules_, apply)

    def _read(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return the columns of the rule that the table has, by name."""
        columns = self._share_columns()
        matrix = number_matrix(X, columns)
        return {column.name: matrix[:, place] for place, column in enumerate(columns)}

    def _load(self, folder: Path) -> None:
        super()._load(folder)
        self.rules_ = {
            target: {task: (float(threshold), str(name)) for task, (threshold, name) in by_task.items()}
            for target, by_task in self.rules_.items()
        }


def _best_rule(values: dict[str, np.ndarray], busy: list[str], rows: np.ndarray, y: np.ndarray) -> Rule:
    """Return the rule of least absolute error on some rows, the first one among equals."""
    rules = list(product(THRESHOLDS, busy))
    errors = [
        np.abs(_apply(values[IDLE][rows], values[name][rows], threshold) - y[rows]).mean() if rows.any() else 0.0
        for threshold, name in rules
    ]
    return rules[int(np.argmin(errors))]


def _apply(idle: np.ndarray, share: np.ndarray, threshold: float) -> np.ndarray:
    """Return 1 where the victim rests more than the threshold, else the share; 1 where a value is missing."""
    return np.where(idle > threshold, 1.0, np.nan_to_num(share, nan=1.0))
