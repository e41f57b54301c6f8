"""Hybrid predictors around the roofline model, with weights that depend on the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns
from perfcast.predictors.analytical.roofline import RooflinePredictor
from perfcast.predictors.hybrid.residual_stacking import (
    MAX_RESIDUAL,
    HybridPredictor,
    Weights,
    average_best,
    candidate_weights,
)
from perfcast.predictors.linear import Ridge
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, SMALL_TABLE, draw_rows, groups_of, joined_labels, task_labels
from perfcast.predictors.trees import ExtraTrees
from perfcast.schema.table import Tag

_RESIDUAL_MEDIANS = 4.0
"""Residuals are clipped at this many medians, or at MAX_RESIDUAL if that is larger."""
_N_FOLDS = 3


@dataclass(kw_only=True, eq=False, repr=False)
class RooflineHybridPredictor(HybridPredictor):
    """The roofline model plus a weighted learner of its residual.

    Rows with equal features are first replaced by their median, because repetitions add no information. The weight of
    every task is chosen by the mean absolute percentage error over inner folds by ENTITY, and over the validation rows
    as one more fold. Tables of fewer than 50 rows are not divided: the weight is then 1. Of a task with more than
    `max_samples_per_task` rows so many are drawn: kernels in a grid of sizes are near-copies of each other.
    """

    max_samples_per_task: int = 10_000

    def _new_structure(self) -> dict[str, Predictor]:
        return {"roofline": RooflinePredictor()}

    def _residual_limit(self, residual: np.ndarray) -> float:
        return max(MAX_RESIDUAL, _RESIDUAL_MEDIANS * float(np.nanmedian(np.abs(residual))))

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        names = [column.name for column in feature_columns(self.columns_, task=True)]
        if names:
            group = X.groupby(names, dropna=False, sort=False, observed=True).ngroup().to_numpy()
            _, first = np.unique(group, return_index=True)
            X, self._when = X.iloc[first], None if self._when is None else self._when[first]
            log_y = pd.DataFrame(log_y).groupby(group).median().to_numpy()
            validation = pd.Series(validation).groupby(group).any().to_numpy()
        drawn = draw_rows(task_labels(X, self.columns_), self.max_samples_per_task)
        if len(drawn) < len(X):
            X, log_y, validation = X.iloc[drawn], log_y[drawn], validation[drawn]
            self._when = None if self._when is None else self._when[drawn]
        super()._fit(X, log_y, validation)

    def _choose_weights(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> dict[str, Weights]:
        candidates = candidate_weights(list(self._new_learners()))
        folds = self._inner_folds(X, validation) if len(X) >= SMALL_TABLE else ()
        rows, errors = [np.empty(0, dtype=int)], [np.empty((len(candidates), 0))]
        for testing in self._backtest(X, log_y, ((~fold, fold) for fold in folds)):
            by_target = self._candidate_errors(X[testing], log_y[testing], candidates)
            # A row without any target has no error; those of several targets are averaged.
            errors.append(np.array([pd.DataFrame(error).mean(axis=1).to_numpy() for error in by_target]))
            rows.append(np.flatnonzero(testing))
        tested, by_row = np.concatenate(rows), np.concatenate(errors, axis=1)
        tasks = groups_of(task_labels(X, self.columns_), np.ones(len(X), dtype=bool))
        chosen = {}
        for task, mask in tasks.items():
            of_task = by_row[:, mask[tested]]
            known = np.isfinite(of_task).any()
            chosen[task] = average_best(candidates, np.nanmean(of_task, axis=1)) if known else candidates[-1]
        return chosen

    def _inner_folds(self, X: pd.DataFrame, validation: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the rows that each inner fold holds out, (n,) bool."""
        tagged = [column for column in self.columns_ if Tag.ENTITY in column.tags]
        labels = joined_labels(X, tagged) if tagged else np.arange(len(X)).astype(str).astype(object)
        labels = np.where(pd.isna(labels), "", labels).astype(str)
        names = np.unique(labels)
        fold_of = dict(zip(names, np.random.default_rng(0).permutation(len(names)) % _N_FOLDS, strict=True))
        fold = np.array([fold_of[label] for label in labels])
        yield from (fold == number for number in range(min(_N_FOLDS, len(names))) if len(names) > 1)
        if validation.any() and not validation.all():
            yield validation

    def _weight_groups(self, X: pd.DataFrame) -> np.ndarray:
        tasks = map(str, task_labels(X, self.columns_))
        return np.array([task if task in self.weights_ else POOLED for task in tasks], dtype=object)


@dataclass(kw_only=True, eq=False, repr=False)
class RooflineRidgePredictor(RooflineHybridPredictor):
    """The roofline model with a ridge regression on its residual."""

    alpha: float = 1e-2
    min_count: int = 2
    clip: float = 0.25

    def _new_learners(self) -> dict[str, Predictor]:
        return {"ridge": Ridge(default_alpha=self.alpha, min_count=self.min_count, clip=self.clip)}


@dataclass(kw_only=True, eq=False, repr=False)
class RooflineTreesPredictor(RooflineHybridPredictor):
    """The roofline model with extremely randomized trees on its residual."""

    n_estimators: int = 100
    max_features: float = 0.5
    min_samples_leaf: int = 1
    random_state: int = 0

    def _new_learners(self) -> dict[str, Predictor]:
        return {
            "extra_trees": ExtraTrees(
                n_estimators=self.n_estimators,
                max_features=self.max_features,
                min_samples_leaf=self.min_samples_leaf,
                random_state=self.random_state,
            )
        }
