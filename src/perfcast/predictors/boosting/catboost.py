"""Gradient-boosted symmetric trees by CatBoost, an optional package."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.predictors.boosting.common import BoostingPredictor
from perfcast.predictors.task_rows import SMALL_TABLE
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_json, write_text

_CONSTANT = "perfcast_constant"
"""The key of a file that holds a number in place of trees."""


@dataclass(frozen=True)
class Trees:
    """A model of the package with the text of the file it came from, which is what is saved."""

    model: Any
    text: str


@dataclass(kw_only=True, eq=False, repr=False)
class CatboostPredictor(BoostingPredictor):
    """Boosted symmetric trees: all nodes of a level have the same split. Parameters are those of `CatBoostRegressor`.

    Categories enter as ordinal codes, as for the other tree predictors, and not as CatBoost's target statistics. Rows
    that are equal in every column get their mean. For the choice of `n_estimators` see `BoostingPredictor`.
    Raises: UserError in `fit` and in `load_predictor` when the package is not installed.
    Source: Prokhorenkova et al., 2018, CatBoost, NeurIPS 31.
    """

    requires = ("catboost",)
    suffix = ".json"

    max_depth: int = 6
    colsample_bylevel: float = 0.5
    reg_lambda: float = 3.0

    def _best_n_estimators(
        self, encoded: np.ndarray, log_y: np.ndarray, encoded_validation: np.ndarray, log_y_validation: np.ndarray
    ) -> int:
        library = _library()
        if not _varies(encoded):
            return 1
        stop = self.early_stopping_rounds
        booster = library.CatBoostRegressor(**self._parameters(len(encoded), self.n_estimators), eval_metric="MAE")
        booster.fit(
            encoded, log_y, eval_set=(encoded_validation, log_y_validation), early_stopping_rounds=stop, verbose=False
        )
        return int(booster.get_best_iteration()) + 1

    def _fit_booster(self, encoded: np.ndarray, log_y: np.ndarray, n_estimators: int) -> Trees | float:
        library = _library()
        if not _varies(encoded):
            return float(log_y.mean())
        booster = library.CatBoostRegressor(**self._parameters(len(encoded), n_estimators))
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

    def _parameters(self, rows: int, n_estimators: int) -> dict[str, Any]:
        small = rows < SMALL_TABLE
        sampling: dict[str, Any] = {"bootstrap_type": "No"}
        if not small:
            sampling = {"bootstrap_type": "Bernoulli", "subsample": self.subsample}
        return {
            **sampling,
            "loss_function": "RMSE",
            "n_estimators": n_estimators,
            "learning_rate": self.learning_rate,
            "max_depth": self.max_depth,
            "colsample_bylevel": self.colsample_bylevel,
            "reg_lambda": 1e-6 if small else self.reg_lambda,
            "allow_const_label": True,
            "random_state": self.random_state,
            "thread_count": self.n_jobs,
            "allow_writing_files": False,
        }

    def _predict_booster(self, booster: Trees | float, encoded: np.ndarray) -> np.ndarray:
        if isinstance(booster, float):
            return np.full(len(encoded), booster)
        logs: np.ndarray = booster.model.predict(encoded, thread_count=self.n_jobs)
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
            "CatboostPredictor must have the package catboost",
            "it is not installed",
            "pip install perfcast[catboost]",
        ) from None
    return catboost


def _varies(encoded: np.ndarray) -> bool:
    """Return whether any column has two values: CatBoost refuses a table without one."""
    filled = np.where(np.isnan(encoded), np.inf, encoded)
    return bool((filled != filled[:1]).any())
