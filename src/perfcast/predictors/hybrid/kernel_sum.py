"""Sum of kernels: the time of a whole run as the sum of its kernels, each predicted from kernels measured alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors.analytical.speed_of_light import SpeedOfLightPredictor
from perfcast.schema.table import Column, Kind, Role, Tag, select


@dataclass(kw_only=True, eq=False, repr=False)
class KernelSumPredictor(SpeedOfLightPredictor):
    """time = the sum of the ESTIMATE columns.

    Nothing is fitted to whole runs, so the error shows what kernels measured alone tell of them. The dataset takes care
    that an estimate uses no measurement of the row's own machine. A row without a positive sum gets the training median
    of its task.

    Source: Lee, Phanishayee and Mahajan, NeuSight, 2025, ASPLOS, with the roofline of a kernel in the place of a
    network.
    """

    def _known_times(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(number_matrix(X, self._estimate_columns()).sum(axis=1))

    def _estimate_columns(self) -> list[Column]:
        tagged = select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.ESTIMATE)
        return [column for column in tagged if column.role is not Role.TARGET]
