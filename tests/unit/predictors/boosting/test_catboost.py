"""CatBoost: the calls of the package, checked with a stand-in for it; the contract test needs the real one."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perfcast.predictors.boosting.catboost import CatboostPredictor
from perfcast.predictors.predictor import load_predictor
from perfcast.utils.errors import UserError

BEST = 4


class StandIn:
    """Predicts the mean of what it was fitted to; its files carry an identifier that is never the same twice."""

    fits: list[tuple[dict[str, Any], int]] = []  # noqa: RUF012

    def __init__(self, **settings: Any) -> None:
        self.settings, self.mean = settings, 0.0

    def fit(self, X: np.ndarray, y: np.ndarray, **more: Any) -> None:
        StandIn.fits.append((self.settings, len(X)))
        self.mean = float(np.mean(y))

    def get_best_iteration(self) -> int:
        return BEST

    def predict(self, X: np.ndarray, **more: Any) -> np.ndarray:
        return np.full(len(X), self.mean)

    def save_model(self, path: str, format: str) -> None:
        about = {"train_finish_time": str(uuid.uuid4()), "model_guid": str(uuid.uuid4()), "params": {}}
        Path(path).write_text(json.dumps({"model_info": about, "mean": self.mean}))

    def load_model(self, path: str, format: str) -> StandIn:
        self.mean = json.loads(Path(path).read_text())["mean"]
        return self


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    module = ModuleType("catboost")
    module.CatBoostRegressor = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "catboost", module)
    monkeypatch.setattr(StandIn, "fits", [])
    return StandIn


def data(rows: int = 100) -> tuple[pd.DataFrame, pd.DataFrame]:
    return pd.DataFrame({"a": np.arange(rows, dtype=float)}), pd.DataFrame({"score": np.linspace(1.0, 3.0, rows)})


def test_a_missing_package_is_reported_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    with pytest.raises(UserError, match=r"not installed; pip install perfcast\[catboost\]$"):
        CatboostPredictor().fit(*data())


def test_trees_are_the_best_on_validation_rows_and_all_rows_are_learned(library: type[StandIn]) -> None:
    CatboostPredictor(n_estimators=300).fit(*data(), validation=np.arange(100) >= 70)
    (first, chosen_on), (last, learned) = library.fits
    assert (first["n_estimators"], chosen_on, first["eval_metric"]) == (300, 70, "MAE")
    assert (last["n_estimators"], learned) == (BEST + 1, 100)


def test_the_seed_and_one_thread_reach_the_package(library: type[StandIn]) -> None:
    CatboostPredictor(random_state=7).fit(*data())
    settings, _ = library.fits[0]
    assert (settings["random_state"], settings["thread_count"], settings["allow_writing_files"]) == (7, 1, False)


def test_equal_trainings_give_equal_files(library: type[StandIn], tmp_path: Path) -> None:
    X, y = data()
    for name in ("first", "second"):
        CatboostPredictor().fit(X, y).save(tmp_path / name)
    first, second = ((tmp_path / name / "booster_0_0.json").read_bytes() for name in ("first", "second"))
    assert first == second
    assert json.loads(first)["model_info"] == {"params": {}}


def test_a_loaded_predictor_predicts_the_same(library: type[StandIn], tmp_path: Path) -> None:
    X, y = data()
    predictor = CatboostPredictor().fit(X, y)
    predictor.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(X), predictor.predict(X))


def test_rows_that_are_all_alike_get_their_mean(library: type[StandIn], tmp_path: Path) -> None:
    X, y = pd.DataFrame({"a": [1.0, 1.0, 1.0]}), pd.DataFrame({"score": [1.0, 2.0, 4.0]})
    predictor = CatboostPredictor().fit(X, y, validation=np.array([False, False, True]))
    assert library.fits == []
    predictor.save(tmp_path)
    assert np.allclose(load_predictor(tmp_path).predict(X), 2.0)
