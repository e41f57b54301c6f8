"""Gradient-boosted trees by LightGBM."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd

from perfcast.encoding.dense import TreeEncoder, feature_columns
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import (
    SMALL_TABLE,
    by_task_group,
    choice_split,
    measured_rows,
    task_groups,
    task_labels,
)
from perfcast.predictors.base import Predictor


class LightgbmPredictor(Predictor):
    """Boosted trees on log targets.

    One booster per target and task of at least `task_rows` rows; smaller tasks share a booster of all rows in which the
    task is a feature. The number of rounds is the best on the `valid` rows, at most `rounds` and stopped `patience`
    rounds after the best one; the booster is then fitted to all training rows with that number. Without `valid` rows it
    is `rounds`. `leaf_rows` is lowered to a fiftieth of the rows where that is less, and fewer than 50 rows are learned
    without sampling of rows and without `l2`. Deterministic for a given `num_threads`.
    Source: Ke et al., 2017, LightGBM, NeurIPS 30.
    """

    encoder_: TreeEncoder
    models_: list[list[str]]
    boosters_: list[list[lightgbm.Booster]]

    def __init__(
        self,
        *,
        rounds: int = 1000,
        patience: int = 50,
        learning_rate: float = 0.1,
        leaves: int = 31,
        leaf_rows: int = 10,
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
        self.leaves = leaves
        self.leaf_rows = leaf_rows
        self.feature_fraction = feature_fraction
        self.row_fraction = row_fraction
        self.l2 = l2
        self.task_rows = task_rows
        self.num_threads = num_threads
        self.random_state = random_state

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        self.encoder_ = TreeEncoder().fit(X, feature_columns(self.columns_, task=True))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        self.models_, self.boosters_ = [], []
        for index, rows in enumerate(measured_rows(log_y, self.targets_)):
            groups = task_groups(tasks, rows, self.task_rows)
            self.models_.append(list(groups))
            self.boosters_.append([self._boost(encoded, log_y[:, index], group, valid) for group in groups.values()])

    def _boost(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, valid: np.ndarray) -> lightgbm.Booster:
        rounds = self._choose_rounds(encoded, log_y, rows, valid)
        booster = lightgbm.train(self._settings(int(rows.sum())), self._data(encoded, log_y, rows), rounds)
        # What is kept is what a file gives back, so that a loaded model cannot differ.
        return lightgbm.Booster(model_str=booster.model_to_string())

    def _choose_rounds(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, valid: np.ndarray) -> int:
        parts = choice_split(rows, valid)
        if parts is None:
            return self.rounds
        fitting, choosing = parts
        data = self._data(encoded, log_y, fitting)
        booster = lightgbm.train(
            {**self._settings(int(fitting.sum())), "metric": "l1"},
            data,
            self.rounds,
            valid_sets=[lightgbm.Dataset(encoded[choosing], log_y[choosing], reference=data)],
            callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
        )
        return max(1, int(booster.best_iteration))

    def _data(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray) -> lightgbm.Dataset:
        settings = self._settings(int(rows.sum()))
        return lightgbm.Dataset(
            encoded[rows],
            log_y[rows],
            feature_name=[f"f{index}" for index in range(encoded.shape[1])],
            params={name: settings[name] for name in ("min_data_in_bin", "feature_pre_filter", "verbosity")},
        )

    def _settings(self, rows: int) -> dict[str, Any]:
        small = rows < SMALL_TABLE
        return {
            "objective": "regression",
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": max(1, min(self.leaf_rows, rows // SMALL_TABLE)),
            "min_data_in_bin": 1,
            "feature_pre_filter": False,
            "feature_fraction": self.feature_fraction,
            "bagging_fraction": 1.0 if small else self.row_fraction,
            "bagging_freq": 0 if small else 1,
            "lambda_l2": 0.0 if small else self.l2,
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": self.num_threads,
            "verbosity": -1,
        }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)

        def forecast(boosters: list[lightgbm.Booster], model: int, rows: np.ndarray) -> np.ndarray:
            logs: np.ndarray = boosters[model].predict(encoded[rows], num_threads=self.num_threads)
            return logs

        return np.column_stack(
            [
                by_task_group(tasks, models, partial(forecast, boosters))
                for models, boosters in zip(self.models_, self.boosters_, strict=True)
            ]
        )

    def _save(self, folder: Path) -> None:
        write_json(folder / "boosters.json", {"encoder": self.encoder_.to_state(), "models": self.models_})
        for target, boosters in enumerate(self.boosters_):
            for model, booster in enumerate(boosters):
                booster.save_model(folder / f"booster_{target}_{model}.txt")

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "boosters.json")
        self.encoder_ = TreeEncoder.from_state(state["encoder"], feature_columns(self.columns_, task=True))
        self.models_ = state["models"]
        self.boosters_ = [
            [lightgbm.Booster(model_file=folder / f"booster_{target}_{model}.txt") for model in range(len(models))]
            for target, models in enumerate(self.models_)
        ]
