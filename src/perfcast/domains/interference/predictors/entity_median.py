"""Baseline: the median of the same entity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, fitted_by_group, groups_of, joined_labels, measured_rows, task_labels
from perfcast.schema.table import Role, Tag

Medians = dict[str, dict[str, float]]
"""Medians of the logarithms by task and entity; under POOLED those of all."""


@dataclass(kw_only=True, eq=False, repr=False)
class EntityMedianPredictor(Predictor):
    """Median of the training rows of the same task and ENTITY, else of the task, else of all rows."""

    reads_tags_only: ClassVar[bool] = True

    medians_: list[Medians] = field(init=False)
    """By target."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        tasks, entities, self.medians_ = task_labels(X, self.columns_), self._entities(X), []
        for index, rows in enumerate(measured_rows(log_y, self.targets_)):
            logs = log_y[:, index]

            def by_entity(mask: np.ndarray, logs: np.ndarray = logs) -> dict[str, float]:
                def median(inner: np.ndarray) -> float:
                    return float(np.median(logs[inner]))

                return fitted_by_group(groups_of(entities, mask), median)

            self.medians_.append(fitted_by_group(groups_of(tasks, rows), by_entity))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        entities = self._entities(X)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(task_labels(X, self.columns_)):
            of_task = self.medians_[index].get(task, self.medians_[index][POOLED])
            logs[rows, index] = [of_task.get(entity, of_task[POOLED]) for entity in entities[rows]]
        return logs

    def _entities(self, X: pd.DataFrame) -> np.ndarray:
        tagged = [column for column in self.columns_ if Tag.ENTITY in column.tags and column.role is not Role.TARGET]
        labels = joined_labels(X, tagged)
        return np.where(pd.isna(labels), "", labels)
