"""Extra trees: the walk gives scikit-learn's forecast, thresholds are drawn and not searched."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from perfcast.predictors.trees import ExtraTrees, ForestPredictor, RandomForest


def data(rows: int = 300) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=rows), "b": rng.integers(0, 4, rows).astype(float)})
    return X, pd.DataFrame({"score": np.exp(np.sin(X["a"]) + X["b"])})


def test_forecast_equals_scikit_learn() -> None:
    X, y = data()
    reference = ExtraTreesRegressor(n_estimators=7, max_features=1.0, random_state=3)
    reference.fit(X.to_numpy(dtype=np.float32), np.rint(np.log(y["score"]) * 2.0**24) / 2.0**24)
    new = pd.DataFrame({"a": np.linspace(-2, 2, 50), "b": 1.0})
    found = np.log(ExtraTrees(n_estimators=7, max_features=1.0, random_state=3).fit(X, y).predict(new)["score"])
    np.testing.assert_allclose(found, reference.predict(new.to_numpy(dtype=np.float32)), rtol=1e-12)


def test_thresholds_lie_anywhere_between_two_values() -> None:
    X = pd.DataFrame({"a": [0.0, 0.0, 1.0, 1.0]})
    y = pd.DataFrame({"score": [1.0, 1.0, 9.0, 9.0]})

    def thresholds(kind: type[ForestPredictor]) -> set[float]:
        forests = [kind(n_estimators=1, random_state=seed).fit(X, y).forests_[0][0] for seed in (0, 1)]
        return {forest["number"][0].as_py() for forest in forests}

    drawn, searched = thresholds(ExtraTrees), thresholds(RandomForest)
    assert searched == {0.5}
    assert len(drawn) == 2
    assert all(0.0 <= threshold < 1.0 for threshold in drawn)


def test_another_seed_grows_another_forest_without_resampling() -> None:
    X, y = data()
    new = pd.DataFrame({"a": np.linspace(-2, 2, 50), "b": 1.0})
    first, second = (ExtraTrees(n_estimators=3, random_state=seed).fit(X, y).predict(new) for seed in (0, 1))
    assert not first.equals(second)


def test_training_rows_are_known_by_heart_without_resampling() -> None:
    X, y = data()
    # to half of what targets are multiples of, in logarithms
    np.testing.assert_allclose(ExtraTrees(n_estimators=3).fit(X, y).predict(X), y, rtol=1.001 * 2.0**-25)
