"""Lookups that fit nothing or a median: medians of entities, and shares of resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.interference.features.alone_ratios import USE, WORK
from perfcast.domains.interference.features.resource_shares import CORE, SCHEDSTAT, STALLS
from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors import task_rows
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, Tag

MIN_SHARE = 0.01
"""Prediction for a victim that had nothing of its resource."""

Medians = dict[str, dict[str, float]]
"""Medians of the logarithms by task and entity; under POOLED those of all."""


@dataclass(kw_only=True, eq=False, repr=False)
class EntityMedianPredictor(Predictor):
    """Median of the training rows of the same task and ENTITY, else of the task, else of all rows."""

    reads_tags_only: ClassVar[bool] = True

    medians_: list[Medians] = field(init=False)
    """By target."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        tasks = task_rows.task_labels(X, self.columns_)
        entities = self._entities(X)
        self.medians_ = []
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
            by_task = self.medians_[index]
            by_entity = by_task.get(task, by_task[task_rows.POOLED])
            pooled = by_entity[task_rows.POOLED]
            logs[rows, index] = [by_entity.get(entity, pooled) for entity in entities[rows]]
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
    """Columns of the product, as far as the table has them."""

    medians_: dict[str, dict[str, float]] = field(init=False)
    """Median of the logarithms by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.medians_ = task_rows.task_medians(task_rows.task_labels(X, self.columns_), log_y, self.targets_)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        shares = number_matrix(X, self._share_columns())
        is_missing = np.isnan(shares)
        has_share = ~is_missing.all(axis=1)
        product = np.where(is_missing, 1.0, shares).prod(axis=1)
        logs = np.log(np.clip(product, MIN_SHARE, None))
        tasks = task_rows.task_labels(X, self.columns_)

        def apply(median: float, rows: np.ndarray) -> np.ndarray:
            return np.where(has_share[rows], logs[rows], median)

        return self._apply_models(tasks, self.medians_, apply)

    def _share_columns(self) -> list[Column]:
        features = {column.name: column for column in self.columns_ if column.role is Role.FEATURE}
        present = (features.get(name) for name in self.shares)
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
