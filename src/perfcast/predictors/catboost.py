"""Gradient-boosted symmetric trees by CatBoost, an optional package."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.errors import UserError
from perfcast.io import write_json, write_text
from perfcast.predictors._boosting import BoostingPredictor
from perfcast.predictors._rows import SMALL_TABLE

_CONSTANT = "perfcast_constant"
"""The key of a file that holds a number in place of trees."""


@dataclass(frozen=True)
class Trees:
    """A model of the package with the text of the file it came from, which is what is saved."""

    model: Any
    text: str


class CatboostPredictor(BoostingPredictor):
    """Boosted trees on log targets that ask the same question at every node of a level, to `depth`.

    Categories enter as ordinal codes, as for the other tree predictors, and not as CatBoost's target statistics. Fewer
    than 50 rows are learned without sampling of rows and without `l2`; rows that are equal in every column are answered
    by their mean. How `rounds` is used: see `BoostingPredictor`. Deterministic for a given `num_threads`.
    Raises: UserError in `fit` and in `load_predictor` when the package is not installed.
    Source: Prokhorenkova et al., 2018, CatBoost, NeurIPS 31.
    """

    requires = ("catboost",)
    _suffix = ".json"

    def __init__(
        self,
        *,
        rounds: int = 1000,
        patience: int = 50,
        learning_rate: float = 0.1,
        depth: int = 6,
        feature_fraction: float = 0.5,
        row_fraction: float = 0.8,
        l2: float = 3.0,
        task_rows: int = 500,
        num_threads: int = 1,
        random_state: int = 0,
    ) -> None:
        self.rounds = rounds
        self.patience = patience
        self.learning_rate = learning_rate
        self.depth = depth
        self.feature_fraction = feature_fraction
        self.row_fraction = row_fraction
        self.l2 = l2
        self.task_rows = task_rows
        self.num_threads = num_threads
        self.random_state = random_state

    def _best_rounds(
        self, encoded: np.ndarray, log_y: np.ndarray, held_out: np.ndarray, held_out_log_y: np.ndarray
    ) -> int:
        library = _library()
        if not _varies(encoded):
            return 1
        booster = library.CatBoostRegressor(**self._settings(len(encoded), self.rounds), eval_metric="MAE")
        booster.fit(
            encoded, log_y, eval_set=(held_out, held_out_log_y), early_stopping_rounds=self.patience, verbose=False
        )
        return int(booster.get_best_iteration()) + 1

    def _train(self, encoded: np.ndarray, log_y: np.ndarray, rounds: int) -> Trees | float:
        library = _library()
        if not _varies(encoded):
            return float(log_y.mean())
        booster = library.CatBoostRegressor(**self._settings(len(encoded), rounds))
        booster.fit(encoded, log_y, verbose=False)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "booster.json"
            booster.save_model(str(path), format="json")
            model = json.loads(path.read_text(encoding="utf-8"))
            # Both differ between two equal trainings, and equal trainings give equal bytes.
            for name in ("train_finish_time", "model_guid"):
                model.get("model_info", {}).pop(name, None)
            path.write_text(json.dumps(model), encoding="utf-8")
            return self._read(path)

    def _settings(self, rows: int, rounds: int) -> dict[str, Any]:
        small = rows < SMALL_TABLE
        sampling: dict[str, Any] = {"bootstrap_type": "No"}
        if not small:
            sampling = {"bootstrap_type": "Bernoulli", "subsample": self.row_fraction}
        return {
            **sampling,
            "loss_function": "RMSE",
            "iterations": rounds,
            "learning_rate": self.learning_rate,
            "depth": self.depth,
            "rsm": self.feature_fraction,
            "l2_leaf_reg": 1e-6 if small else self.l2,
            "allow_const_label": True,
            "random_seed": self.random_state,
            "thread_count": self.num_threads,
            "allow_writing_files": False,
        }

    def _forecast(self, booster: Trees | float, encoded: np.ndarray) -> np.ndarray:
        if isinstance(booster, float):
            return np.full(len(encoded), booster)
        logs: np.ndarray = booster.model.predict(encoded, thread_count=self.num_threads)
        return logs

    def _write(self, booster: Trees | float, path: Path) -> None:
        if isinstance(booster, float):
            write_json(path, {_CONSTANT: booster})
        else:
            write_text(path, booster.text)

    def _read(self, path: Path) -> Trees | float:
        library = _library()
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
        if _CONSTANT in content:
            return float(content[_CONSTANT])
        model = library.CatBoostRegressor()
        model.load_model(str(path), format="json")
        return Trees(model, text)


def _library() -> Any:
    """Import the package when it is needed, so that the other predictors do without it."""
    try:
        import catboost
    except ModuleNotFoundError as error:
        if error.name != "catboost":
            raise
        raise UserError(
            "the predictor catboost must have the package catboost",
            "it is not installed",
            "pip install perfcast[catboost]",
        ) from None
    return catboost


def _varies(encoded: np.ndarray) -> bool:
    """Whether any column has two values: CatBoost refuses a table without one."""
    filled = np.where(np.isnan(encoded), np.inf, encoded)
    return bool((filled != filled[:1]).any())
