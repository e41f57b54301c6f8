"""Gradient-boosted trees by LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import lightgbm
import numpy as np

from perfcast.predictors.task_rows import SMALL_TABLE
from perfcast.predictors.trees import BoostingPredictor

_TREES = 100
"""Trees of one call for a prediction: that many of 63 leaves fit into the second-level cache of a core."""

_MIN_COLUMNS = 8
"""Fewest columns of a tree in a small table: a tree of one column isolates rows."""

_SORT_COLUMNS = 6
"""Number of most split columns that rows are sorted by before a prediction."""


@dataclass(kw_only=True, eq=False, repr=False)
class LightgbmPredictor(BoostingPredictor):
    """Boosted trees, grown leaf by leaf on histograms. Parameters are those of `lightgbm.LGBMRegressor`.

    `min_child_samples` and `num_leaves` are at most a fiftieth of the rows, and a tree has three leaves at least. Where
    that bounds the leaves, a tree takes eight columns or all. `alpha` is the error (natural logarithms) beyond which
    the objective `huber` is linear; others ignore it. For the choice of `n_estimators` see `BoostingPredictor`.
    Source: Ke et al., 2017, LightGBM, NeurIPS 30; Huber, 1964, Ann. Math. Stat. 35(1).
    """

    suffix = ".txt"

    num_leaves: int = 31
    min_child_samples: int = 10
    colsample_bytree: float = 0.5
    objective: str = "regression"
    alpha: float = 0.9

    def _best_n_estimators(
        self, encoded: np.ndarray, log_y: np.ndarray, encoded_validation: np.ndarray, log_y_validation: np.ndarray
    ) -> int:
        eval_X, eval_y = _at_least_two(encoded_validation, log_y_validation)
        model = self._regressor(encoded.shape, self.n_estimators, metric="l1").fit(
            *_at_least_two(encoded, log_y),
            eval_X=eval_X,
            eval_y=eval_y,
            feature_name=_names(encoded),
            callbacks=[lightgbm.early_stopping(self.early_stopping_rounds, verbose=False)],
        )
        return int(model.best_iteration_)

    def _fit_booster(self, encoded: np.ndarray, log_y: np.ndarray, n_estimators: int) -> lightgbm.Booster:
        model = self._regressor(encoded.shape, n_estimators)
        model.fit(*_at_least_two(encoded, log_y), feature_name=_names(encoded))
        return lightgbm.Booster(model_str=model.booster_.model_to_string())

    def _regressor(self, shape: tuple[int, ...], n_estimators: int, **more: str) -> lightgbm.LGBMRegressor:
        rows, columns = shape
        num_leaves = max(3, min(self.num_leaves, rows // SMALL_TABLE))
        min_share = _MIN_COLUMNS / columns if num_leaves < self.num_leaves else 0.0
        return lightgbm.LGBMRegressor(
            objective=self.objective,
            **({"alpha": self.alpha} if self.objective == "huber" else {}),
            n_estimators=n_estimators,
            learning_rate=self.learning_rate,
            num_leaves=num_leaves,
            min_child_samples=max(1, min(self.min_child_samples, rows // SMALL_TABLE)),
            min_data_in_bin=1,
            feature_pre_filter=False,
            colsample_bytree=min(1.0, max(self.colsample_bytree, min_share)),
            **self._regularization(rows),
            subsample_freq=0 if rows < SMALL_TABLE else 1,
            random_state=self.random_state,
            deterministic=True,
            force_col_wise=True,  # the same trees, faster when a tree takes few of the columns
            n_jobs=self.n_jobs,
            verbosity=-1,
            **more,
        )

    def _predict_model(self, model: lightgbm.Booster, encoded: np.ndarray) -> np.ndarray:
        # Similar rows take the same paths through trees that are still in the cache: nearly twice as fast.
        frequent = np.argsort(model.feature_importance(), kind="stable")[-_SORT_COLUMNS:]
        order = np.lexsort(encoded[:, frequent].T)
        ordered = encoded[order]
        logs = np.empty(len(encoded))
        logs[order] = sum(
            model.predict(ordered, start_iteration=start, num_iteration=_TREES, num_threads=self.n_jobs)
            for start in range(0, model.num_trees(), _TREES)
        )
        return logs

    def _write(self, model: lightgbm.Booster, path: Path) -> None:
        model.save_model(path)

    def _read(self, path: Path) -> lightgbm.Booster:
        return lightgbm.Booster(model_file=path)


def _at_least_two(encoded: np.ndarray, log_y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, a single one twice: `LGBMRegressor` refuses one row, and a repeated one has the same mean."""
    return (np.repeat(encoded, 2, axis=0), np.repeat(log_y, 2)) if len(encoded) == 1 else (encoded, log_y)


def _names(encoded: np.ndarray) -> list[str]:
    return [f"f{index}" for index in range(encoded.shape[1])]
