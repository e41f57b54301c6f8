"""Gradient-boosted trees by XGBoost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from perfcast.predictors.task_rows import SMALL_TABLE
from perfcast.predictors.trees import BoostingPredictor


@dataclass(kw_only=True, eq=False, repr=False)
class XgboostPredictor(BoostingPredictor):
    """Boosted trees, grown level by level on histograms. Parameters are those of `xgboost.XGBRegressor`.

    `min_child_weight` is at most a fiftieth of the rows; under squared errors every row weighs 1, so it is a number of
    rows. For the choice of `n_estimators` see `BoostingPredictor`. Predictions have single precision.
    Source: Chen and Guestrin, 2016, XGBoost, KDD.
    """

    suffix = ".json"

    max_depth: int = 6
    min_child_weight: int = 5
    colsample_bytree: float = 0.5

    def _best_n_estimators(
        self, encoded: np.ndarray, log_y: np.ndarray, encoded_validation: np.ndarray, log_y_validation: np.ndarray
    ) -> int:
        stopping = {"eval_metric": "mae", "early_stopping_rounds": self.early_stopping_rounds}
        model = self._regressor(len(encoded), self.n_estimators, **stopping)
        model.fit(encoded, log_y, eval_set=[(encoded_validation, log_y_validation)], verbose=False)
        return int(model.best_iteration) + 1

    def _fit_booster(self, encoded: np.ndarray, log_y: np.ndarray, n_estimators: int) -> xgboost.Booster:
        model = self._regressor(len(encoded), n_estimators).fit(encoded, log_y)
        return self._restore(model.get_booster().save_raw("json"))

    def _regressor(self, rows: int, n_estimators: int, **more: Any) -> xgboost.XGBRegressor:
        names = ("learning_rate", "max_depth", "colsample_bytree", "random_state", "n_jobs")
        options = {name: getattr(self, name) for name in names} | self._regularization(rows) | more
        options["min_child_weight"] = max(1, min(self.min_child_weight, rows // SMALL_TABLE))
        fixed = {"objective": "reg:squarederror", "tree_method": "hist", "verbosity": 0}
        return xgboost.XGBRegressor(n_estimators=n_estimators, **fixed, **options)

    def _predict_model(self, model: xgboost.Booster, encoded: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(xgboost.DMatrix(encoded, nthread=self.n_jobs)))

    def _write(self, model: xgboost.Booster, path: Path) -> None:
        model.save_model(path)

    def _read(self, path: Path) -> xgboost.Booster:
        return self._restore(bytearray(path.read_bytes()))

    def _restore(self, model: bytearray) -> xgboost.Booster:
        return xgboost.Booster({"nthread": self.n_jobs}, model_file=model)
