"""Sum of kernels: a whole run as the sum of its kernels, each predicted from kernels measured alone; with trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors.analytical.speed_of_light import SpeedOfLightPredictor
from perfcast.predictors.hybrid.roofline_hybrids import RooflineTreesPredictor
from perfcast.predictors.predictor import Predictor
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


@dataclass(kw_only=True, eq=False, repr=False)
class KernelSumTreesPredictor(RooflineTreesPredictor):
    """The sum of kernels, with extremely randomized trees on its residual.

    The weight of the trees is chosen on inner folds by ENTITY: it is 0 where the residual of one machine does not tell
    that of another.
    """

    n_estimators: int = 60
    min_samples_leaf: int = 2

    def _new_structure(self) -> dict[str, Predictor]:
        return {"kernel_sum": KernelSumPredictor()}
