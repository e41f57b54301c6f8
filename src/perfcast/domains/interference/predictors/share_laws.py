"""Shares of resources as predictions, without a fit: `core_share`, `schedstat`, `pressure_stall`, of alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.interference.features.alone_ratios import USE, WORK
from perfcast.domains.interference.features.resource_shares import CORE, SCHEDSTAT, STALLS
from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, task_labels, task_medians
from perfcast.schema.table import Column, Kind, Role

MIN_SHARE = 0.01
"""Prediction for a victim that had nothing of its resource."""


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
        self.medians_ = task_medians(task_labels(X, self.columns_), log_y, self.targets_)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        shares = number_matrix(X, self._share_columns())
        known = ~np.isnan(shares).all(axis=1)
        product = np.log(np.clip(np.where(np.isnan(shares), 1.0, shares).prod(axis=1), MIN_SHARE, None))
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(task_labels(X, self.columns_)):
            by_task = self.medians_[self.targets_[index]]
            logs[rows, index] = np.where(known[rows], product[rows], by_task.get(task, by_task[POOLED]))
        return logs

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
