"""Base of the gradient-boosted trees: a number of trees chosen on validation rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfcast.predictors.task_rows import SMALL_TABLE, choice_split
from perfcast.predictors.tree_models import TreesPredictor


@dataclass(kw_only=True, eq=False, repr=False)
class BoostingPredictor(TreesPredictor):
    """Boosted trees on log targets.

    The number of trees is the best one on the validation rows, at most `n_estimators`; the search stops
    `early_stopping_rounds` after the best one. The booster is then fitted to all training rows with that number.
    Without validation rows, or with 0 rounds, it has `n_estimators` trees. Fewer than 50 rows are learned without
    sampling of rows and without `reg_lambda`. A fit is deterministic for a given `n_jobs`.

    A subclass implements the abstract methods with the estimator of a library.
    """

    n_estimators: int = 1000
    early_stopping_rounds: int = 50
    learning_rate: float = 0.1
    subsample: float = 0.8
    reg_lambda: float = 1.0

    @abstractmethod
    def _best_n_estimators(
        self, encoded: np.ndarray, log_y: np.ndarray, encoded_validation: np.ndarray, log_y_validation: np.ndarray
    ) -> int:
        """Return the number of trees with the smallest mean absolute log error on the validation rows."""

    @abstractmethod
    def _fit_booster(self, encoded: np.ndarray, log_y: np.ndarray, n_estimators: int) -> Any:
        """Return a booster as its file gives it back, so that a loaded model cannot differ."""

    def _fit_model(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, validation: np.ndarray) -> Any:
        n_estimators = self.n_estimators
        split = choice_split(rows, validation) if self.early_stopping_rounds else None
        if split is not None:
            fitting, choosing = split
            best = self._best_n_estimators(encoded[fitting], log_y[fitting], encoded[choosing], log_y[choosing])
            n_estimators = max(1, best)
        return self._fit_booster(encoded[rows], log_y[rows], n_estimators)

    def _regularization(self, rows: int) -> dict[str, float]:
        """Return the row sampling and the penalty for a training part of so many rows."""
        if rows < SMALL_TABLE:
            return {"subsample": 1.0, "reg_lambda": 0.0}
        return {"subsample": self.subsample, "reg_lambda": self.reg_lambda}
