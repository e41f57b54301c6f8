"""Boosted trees: their number is chosen on the validation rows, then every training row is learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost

from perfcast.config.predictor_conf import read_predictor
from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.boosting.xgboost import XgboostPredictor
from perfcast.predictors.trees import BoostingPredictor

BOTH = pytest.mark.parametrize("kind", [LightgbmPredictor, XgboostPredictor])
LATE = np.arange(400) >= 300


def data(rows: int = 400, noise: float = 0.5) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 5)), columns=list("abcde"))
    return X, pd.DataFrame({"score": np.exp(X["a"] + noise * rng.normal(size=rows))})


def count_trees(predictor: BoostingPredictor) -> int:
    model = predictor.models_[0][0]
    return int(model.num_trees() if isinstance(predictor, LightgbmPredictor) else model.num_boosted_rounds())


@BOTH
def test_noise_stops_at_the_best_number_of_trees(kind: type[BoostingPredictor]) -> None:
    X, y = data()
    n_trees = count_trees(kind(n_estimators=300, early_stopping_rounds=10).fit(X, y, validation=LATE))
    assert 1 <= n_trees < 300

    def error(number: int) -> float:
        predicted = kind(n_estimators=number).fit(X[~LATE], y[~LATE]).predict(X[LATE])
        return float(np.abs(np.log(predicted / y[LATE])).to_numpy().mean())

    assert error(n_trees) <= min(error(max(1, n_trees - 3)), error(n_trees + 5))


@BOTH
def test_all_trees_are_used_without_validation_rows_or_without_a_search(kind: type[BoostingPredictor]) -> None:
    X, y = data()
    assert count_trees(kind(n_estimators=17).fit(X, y)) == 17
    assert count_trees(kind(n_estimators=100, early_stopping_rounds=0).fit(X, y, validation=LATE)) == 100


@BOTH
def test_validation_rows_are_learned_too(kind: type[BoostingPredictor]) -> None:
    X, y = data(noise=0.0)
    X["late"] = LATE.astype(float)
    y["score"] *= np.exp(X["late"])
    predictor = kind(n_estimators=100, early_stopping_rounds=100).fit(X, y, validation=LATE)
    errors = np.log(predictor.predict(X)["score"] / y["score"])
    assert abs(errors[LATE].mean()) < 0.2


@BOTH
def test_another_seed_grows_other_trees(kind: type[BoostingPredictor]) -> None:
    X, y = data()
    first, second = (kind(n_estimators=20, random_state=seed).fit(X, y).predict(X) for seed in (0, 1))
    assert not first.equals(second)


def test_the_saved_model_is_the_librarys_own_and_answers_without_this_project(tmp_path: Path) -> None:
    X, y = data()
    predictor = XgboostPredictor(n_estimators=20).fit(X, y)
    predictor.save(tmp_path)
    path = tmp_path / "model_0_0.json"
    assert "learner" in json.loads(path.read_text())
    alone = xgboost.Booster(model_file=path).predict(xgboost.DMatrix(X.to_numpy()))
    np.testing.assert_array_equal(np.exp(alone.astype(float)), predictor.predict(X)["score"])


@pytest.mark.parametrize("robust_loss", [{"objective": "huber", "alpha": 0.02}, {"objective": "regression_l1"}])
def test_a_robust_loss_follows_the_usual_level_and_not_a_few_far_results(robust_loss: dict[str, Any]) -> None:
    X = pd.DataFrame({"a": np.arange(400) // 200})
    y = pd.DataFrame({"score": np.where(np.arange(400) % 10, 1.0, 2.0) * np.exp(X["a"])})
    squared, robust = (
        np.log(LightgbmPredictor(n_estimators=500, **value).fit(X, y).predict(X)["score"].iloc[0])
        for value in ({}, robust_loss)
    )
    assert squared == pytest.approx(0.1 * np.log(2), abs=0.01)
    assert abs(robust) < 0.01


def test_predictions_are_the_models_own_whatever_their_order_and_however_many_are_asked_at_once() -> None:
    X, y = data()
    X.loc[::7, "b"] = np.nan
    predictor = LightgbmPredictor(n_estimators=230).fit(X, y)
    booster = predictor.models_[0][0]
    together = predictor.predict(X)["score"]
    np.testing.assert_allclose(np.log(together), booster.predict(X), rtol=1e-12)
    backward = predictor.predict(X[::-1])["score"]
    assert backward[::-1].tolist() == together.tolist()
    assert [predictor.predict(X[row : row + 1])["score"].iloc[0] for row in range(3)] == together[:3].tolist()


def test_a_small_table_with_few_columns_is_learned() -> None:
    """Trees of one column and many leaves isolate rows: their error was three times that of the bounded ones."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: np.exp(rng.uniform(0, 2, 120)) for name in ("cores", "mhz", "memory", "bandwidth")})
    y = X["cores"] * X["mhz"] ** 0.7 * X["memory"] ** 0.2 * np.exp(rng.normal(0, 0.03, 120))
    conf = read_predictor(Path(__file__).parents[3] / "conf", "lightgbm")
    small = LightgbmPredictor(**conf.settings("quick")["quick"]).fit(X[:96], y[:96])
    assert np.abs(small.predict(X[96:]) / y[96:] - 1).mean() < 0.12
