"""Boosted trees on the residual of a physical time, from columns that carry over between machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.predictors.analytical.speed_of_light import SpeedOfLightPredictor
from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.hybrid.residual_stacking import HybridPredictor, Weights
from perfcast.predictors.hybrid.roofline_hybrids import RooflineHybridPredictor
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED

_NAME = "lightgbm"


@dataclass(kw_only=True, eq=False, repr=False)
class BoostedResidualPredictor(HybridPredictor):
    """A physical time and LightGBM on its residual.

    `without` are shell patterns of columns that the trees do not see: a peak or a bandwidth has one value per machine,
    so trees learn the machines by heart, where ratios to a peak have values in common. Other parameters are LightGBM's.
    """

    n_estimators: int = 200
    learning_rate: float = 0.05
    num_leaves: int = 31
    min_child_samples: int = 50
    colsample_bytree: float = 0.5
    subsample: float = 0.8
    reg_lambda: float = 1.0
    objective: str = "regression"
    without: Sequence[str] = ()
    random_state: int = 0

    def _new_learners(self) -> dict[str, Predictor]:
        trees = LightgbmPredictor(
            n_estimators=self.n_estimators,
            early_stopping_rounds=0,
            learning_rate=self.learning_rate,
            num_leaves=self.num_leaves,
            min_child_samples=self.min_child_samples,
            colsample_bytree=self.colsample_bytree,
            subsample=self.subsample,
            reg_lambda=self.reg_lambda,
            objective=self.objective,
            random_state=self.random_state,
        )
        trees.without_columns = tuple(self.without)
        return {_NAME: trees}


@dataclass(kw_only=True, eq=False, repr=False)
class LightTreesPredictor(BoostedResidualPredictor):
    """log time = log speed of light + LightGBM: the trees learn the share of the peaks that is reached."""

    def _new_structure(self) -> dict[str, Predictor]:
        return {"speed_of_light": SpeedOfLightPredictor()}

    def _residual_limit(self, residual: np.ndarray) -> float:
        return float("inf")  # launches and kernels make small operators a thousand times slower than light

    def _choose_weights(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> dict[str, Weights]:
        return {POOLED: {_NAME: 1.0}}

    def _weight_groups(self, X: pd.DataFrame) -> np.ndarray:
        return np.full(len(X), POOLED, dtype=object)


@dataclass(kw_only=True, eq=False, repr=False)
class RooflineBoostPredictor(BoostedResidualPredictor, RooflineHybridPredictor):
    """The roofline model and LightGBM on its residual.

    The weight is chosen on the validation rows alone, if there are any: they differ from the training rows as the test
    rows of the split do. All tasks share the mean of their weights, because one held-out family says little about each.
    """

    max_samples_per_task: int = 100_000

    def _choose_weights(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> dict[str, Weights]:
        by_task = super()._choose_weights(X, log_y, validation)
        tasks = [task for task in by_task if task != POOLED] or [POOLED]
        shared = float(np.mean([by_task[task][_NAME] for task in tasks]))
        return {task: {_NAME: shared} for task in by_task}

    def _inner_folds(self, X: pd.DataFrame, validation: np.ndarray) -> Iterator[np.ndarray]:
        if validation.any() and not validation.all():
            yield validation
        else:
            yield from super()._inner_folds(X, validation)
