"""XGBoost: the number of trees is chosen on the validation rows, then every training row is learned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost

from perfcast.predictors.boosting.xgboost import XgboostPredictor


def data(rows: int = 400, noise: float = 0.5) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 5)), columns=list("abcde"))
    return X, pd.DataFrame({"score": np.exp(X["a"] + noise * rng.normal(size=rows))})


def test_noise_stops_at_the_best_number_of_trees() -> None:
    X, y = data()
    validation = np.arange(400) >= 300
    stopped = XgboostPredictor(n_estimators=300, early_stopping_rounds=10).fit(X, y, validation=validation)
    n_trees = stopped.models_[0][0].num_boosted_rounds()
    assert 1 <= n_trees < 300

    def error(number: int) -> float:
        predicted = XgboostPredictor(n_estimators=number).fit(X[~validation], y[~validation]).predict(X[validation])
        return float(np.abs(np.log(predicted / y[validation])).to_numpy().mean())

    assert error(n_trees) <= min(error(max(1, n_trees - 3)), error(n_trees + 5))


def test_all_trees_are_used_without_validation_rows() -> None:
    X, y = data()
    assert XgboostPredictor(n_estimators=17).fit(X, y).models_[0][0].num_boosted_rounds() == 17


def test_validation_rows_are_learned_too() -> None:
    X, y = data(noise=0.0)
    X["late"] = (np.arange(400) >= 300).astype(float)
    y["score"] *= np.exp(X["late"])
    predictor = XgboostPredictor(n_estimators=100, early_stopping_rounds=100).fit(
        X, y, validation=np.arange(400) >= 300
    )
    errors = np.log(predictor.predict(X)["score"] / y["score"])
    assert abs(errors[300:].mean()) < 0.2


def test_another_seed_grows_other_trees() -> None:
    X, y = data()
    first, second = (XgboostPredictor(n_estimators=20, random_state=seed).fit(X, y).predict(X) for seed in (0, 1))
    assert not first.equals(second)


def test_the_saved_model_is_the_librarys_own_and_answers_without_this_project(tmp_path: Path) -> None:
    X, y = data()
    predictor = XgboostPredictor(n_estimators=20).fit(X, y)
    predictor.save(tmp_path)
    path = tmp_path / "model_0_0.json"
    assert "learner" in json.loads(path.read_text())
    alone = xgboost.Booster(model_file=path).predict(xgboost.DMatrix(X.to_numpy()))
    np.testing.assert_array_equal(np.exp(alone.astype(float)), predictor.predict(X)["score"])
