"""Time on a processor as the structure, and trees on what it leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.predictors.hybrid.boosted_residuals import BoostedResidualPredictor
from perfcast.predictors.hybrid.residual_stacking import Weights
from perfcast.predictors.interference.share_laws import SchedstatPredictor
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED


@dataclass(kw_only=True, eq=False, repr=False)
class ResourceSharesTreesPredictor(BoostedResidualPredictor):
    """log share of alone = log schedstat share + LightGBM on the logarithm of their ratio.

    The structure holds for any workload that waits for processors alone. The trees learn what else is shared: memory
    bandwidth, caches, disks, and the processor time that neighbors take from a workload that would have slept.
    """

    objective: str = "regression_l1"

    def _new_structure(self) -> dict[str, Predictor]:
        return {"schedstat": SchedstatPredictor()}

    def _residual_limit(self, residual: np.ndarray) -> float:
        return float("inf")

    def _choose_weights(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> dict[str, Weights]:
        return {POOLED: {"lightgbm": 1.0}}

    def _weight_groups(self, X: pd.DataFrame) -> np.ndarray:
        return np.full(len(X), POOLED, dtype=object)
