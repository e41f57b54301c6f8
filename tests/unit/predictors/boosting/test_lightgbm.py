"""LightGBM: the number of trees is chosen on the validation rows, then every training row is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perfcast.config.predictor_conf import read_predictor
from perfcast.predictors.boosting.lightgbm import LightgbmPredictor


def data(rows: int = 400, noise: float = 0.5) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 5)), columns=list("abcde"))
    return X, pd.DataFrame({"score": np.exp(X["a"] + noise * rng.normal(size=rows))})


def test_noise_stops_early() -> None:
    X, y = data()
    stopped = LightgbmPredictor(n_estimators=300, early_stopping_rounds=10).fit(X, y, validation=np.arange(400) >= 300)
    assert 1 <= stopped.models_[0][0].num_trees() < 300


def test_all_trees_are_used_without_validation_rows_or_without_a_search() -> None:
    X, y = data()
    assert LightgbmPredictor(n_estimators=17).fit(X, y).models_[0][0].num_trees() == 17
    unsearched = LightgbmPredictor(n_estimators=300, early_stopping_rounds=0)
    assert unsearched.fit(X, y, validation=np.arange(400) >= 300).models_[0][0].num_trees() == 300


def test_validation_rows_are_learned_too() -> None:
    X, y = data(noise=0.0)
    X["late"] = (np.arange(400) >= 300).astype(float)
    y["score"] *= np.exp(X["late"])
    predictor = LightgbmPredictor(n_estimators=100, early_stopping_rounds=100).fit(
        X, y, validation=np.arange(400) >= 300
    )
    errors = np.log(predictor.predict(X)["score"] / y["score"])
    assert abs(errors[300:].mean()) < 0.2


def test_another_seed_grows_other_trees() -> None:
    X, y = data()
    first, second = (LightgbmPredictor(n_estimators=20, random_state=seed).fit(X, y).predict(X) for seed in (0, 1))
    assert not first.equals(second)


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
    conf = read_predictor(Path(__file__).parents[4] / "conf", "lightgbm")
    small = LightgbmPredictor(**conf.settings("quick")["quick"]).fit(X[:96], y[:96])
    assert np.abs(small.predict(X[96:]) / y[96:] - 1).mean() < 0.12
    shapes = [small._regressor((rows, 4), 10) for rows in (96, 1549, 1550)]
    assert [model.num_leaves for model in shapes] == [3, 30, 31]
    assert [model.colsample_bytree for model in shapes] == [1.0, 1.0, 0.2]
