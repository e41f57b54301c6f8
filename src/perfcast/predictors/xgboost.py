"""Gradient-boosted trees by XGBoost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from perfcast.predictors._boosting import BoostingPredictor
from perfcast.predictors._rows import SMALL_TABLE


class XgboostPredictor(BoostingPredictor):
    """Boosted trees on log targets, grown level by level to `depth` on histograms.

    `leaf_rows` is lowered to a fiftieth of the rows where that is less, and fewer than 50 rows are learned without
    sampling of rows and without `l2`. How `rounds` is used: see `BoostingPredictor`. Deterministic for a given
    `num_threads`. Forecasts are single precision.
    Source: Chen and Guestrin, 2016, XGBoost, KDD.
    """

    _suffix = ".json"

    def __init__(
        self,
        *,
        rounds: int = 1000,
        patience: int = 50,
        learning_rate: float = 0.1,
        depth: int = 6,
        leaf_rows: int = 5,
        feature_fraction: float = 0.5,
        row_fraction: float = 0.8,
        l2: float = 1.0,
        task_rows: int = 500,
        num_threads: int = 1,
        random_state: int = 0,
    ) -> None:
        self.rounds = rounds
        self.patience = patience
        self.learning_rate = learning_rate
        self.depth = depth
        self.leaf_rows = leaf_rows
        self.feature_fraction = feature_fraction
        self.row_fraction = row_fraction
        self.l2 = l2
        self.task_rows = task_rows
        self.num_threads = num_threads
        self.random_state = random_state

    def _best_rounds(
        self, encoded: np.ndarray, log_y: np.ndarray, held_out: np.ndarray, held_out_log_y: np.ndarray
    ) -> int:
        booster = xgboost.train(
            {**self._settings(len(encoded)), "eval_metric": "mae"},
            self._data(encoded, log_y),
            self.rounds,
            evals=[(self._data(held_out, held_out_log_y), "held_out")],
            early_stopping_rounds=self.patience,
            verbose_eval=False,
        )
        return int(booster.best_iteration) + 1

    def _train(self, encoded: np.ndarray, log_y: np.ndarray, rounds: int) -> xgboost.Booster:
        booster = xgboost.train(self._settings(len(encoded)), self._data(encoded, log_y), rounds)
        return self._restore(booster.save_raw("json"))

    def _data(self, encoded: np.ndarray, log_y: np.ndarray | None = None) -> xgboost.DMatrix:
        return xgboost.DMatrix(encoded, log_y, nthread=self.num_threads)

    def _settings(self, rows: int) -> dict[str, Any]:
        small = rows < SMALL_TABLE
        return {
            "objective": "reg:squarederror",
            "tree_method": "hist",
            "eta": self.learning_rate,
            "max_depth": self.depth,
            # Under squared errors every row weighs 1, so the least weight of a leaf is a number of rows.
            "min_child_weight": max(1, min(self.leaf_rows, rows // SMALL_TABLE)),
            "colsample_bytree": self.feature_fraction,
            "subsample": 1.0 if small else self.row_fraction,
            "lambda": 0.0 if small else self.l2,
            "seed": self.random_state,
            "nthread": self.num_threads,
            "verbosity": 0,
        }

    def _forecast(self, booster: xgboost.Booster, encoded: np.ndarray) -> np.ndarray:
        logs: np.ndarray = booster.predict(self._data(encoded))
        return logs

    def _write(self, booster: xgboost.Booster, path: Path) -> None:
        booster.save_model(path)

    def _read(self, path: Path) -> xgboost.Booster:
        return self._restore(bytearray(path.read_bytes()))

    def _restore(self, model: bytearray) -> xgboost.Booster:
        return xgboost.Booster({"nthread": self.num_threads}, model_file=model)
