"""Speed of light: the time that a machine's peaks allow, without a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import task_labels, task_medians
from perfcast.schema.table import Column, Kind, Role, Tag, select


@dataclass(kw_only=True, eq=False, repr=False)
class SpeedOfLightPredictor(Predictor):
    """time = the longest of the BOUND columns: operations at the peak, bytes at the bandwidth.

    Nothing is fitted, so the error tells which share of its peaks a machine reaches. A row without a positive bound
    gets the training median of its task.

    Source: Williams, Waterman and Patterson, 2009, CACM 52(4), without ceilings.
    """

    reads_tags_only: ClassVar[bool] = True

    medians_: dict[str, dict[str, float]] = field(init=False)
    """Median of the logarithms by target and task."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.medians_ = task_medians(task_labels(X, self.columns_), log_y, self.targets_)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        times, tasks = self._known_times(X), task_labels(X, self.columns_)
        known = times > 0
        times = np.log(np.where(known, times, 1.0))
        return self._apply_models(tasks, self.medians_, lambda each, rows: np.where(known[rows], times[rows], each))

    def _known_times(self, X: pd.DataFrame) -> np.ndarray:
        """Return the time of every row without a fit; not positive where it is unknown. Shapes: (n,)."""
        return np.asarray(np.fmax.reduce(number_matrix(X, self._bound_columns()), axis=1, initial=0.0))

    def _bound_columns(self) -> list[Column]:
        tagged = select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.BOUND)
        return [column for column in tagged if column.role is not Role.TARGET]
