"""Lasso: the weights are those of the library, weights of useless columns are exactly 0."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model

from perfcast.predictors.linear import Lasso
from perfcast.schema import Column, Kind, Role, Tag


def data(rows: int = 200, noise: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 30)), columns=[f"x{index:02d}" for index in range(30)])
    return X, pd.DataFrame({"score": np.exp(0.3 * X["x00"] - 0.2 * X["x01"] + noise * rng.normal(size=rows))})


@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.001])
def test_weights_agree_with_scikit_learn(alpha: float) -> None:
    X, y = data(noise=0.1)
    predictor = Lasso(default_alpha=alpha).fit(X, y)
    inputs = predictor.encoder_.transform(X)
    reference = linear_model.Lasso(alpha=alpha, tol=1e-10).fit(inputs, np.log(y["score"]))
    np.testing.assert_allclose(predictor.weights_["score"][""], [reference.intercept_, *reference.coef_], atol=2e-3)


def test_only_the_columns_that_matter_have_weights() -> None:
    X, y = data()
    weights = np.array(Lasso(default_alpha=0.05).fit(X, y).weights_["score"][""])[1:]
    assert np.flatnonzero(weights).tolist() == [0, 1]
    assert weights[0] == pytest.approx(0.3 * X["x00"].std(ddof=0) - 0.05, abs=0.01)


@pytest.mark.parametrize(("noise", "strongest"), [(0.0, False), (3.0, True)])
def test_the_penalty_grows_with_the_noise(noise: float, strongest: bool) -> None:
    X, y = data(60, noise)
    predictor = Lasso(alphas=(1e-5, 1.0)).fit(X, y, valid=np.arange(60) >= 40)
    assert (predictor.penalties_["score"][""]["alpha"] == 1.0) is strongest


def test_rows_set_aside_are_learned_too() -> None:
    X, y = data(noise=0.1)
    valid = np.arange(len(X)) >= 150
    whole = Lasso(alphas=(0.01,)).fit(X, y, valid=valid)
    plain = Lasso(alphas=(0.01,), default_alpha=0.01).fit(X, y)
    pd.testing.assert_frame_equal(whole.predict(X), plain.predict(X))


def test_every_task_has_weights_of_its_own_and_a_new_one_those_of_all() -> None:
    X, y = data()
    X = X.assign(suite=np.where(np.arange(len(X)) % 2 == 0, "rate", "speed"))
    y = y.where(X["suite"] == "rate", 1 / y, axis=0)
    columns = [
        *[Column(name, Kind.NUMERICAL, Role.FEATURE, "all") for name in X.columns if name != "suite"],
        Column("suite", Kind.CATEGORICAL, Role.FEATURE, "all", tags=(Tag.TASK,)),
    ]
    predictor = Lasso(default_alpha=1e-5).fit(X, y, columns=columns)
    assert np.abs(np.log(predictor.predict(X) / y)).to_numpy().max() < 1e-2
    # the two tasks mirror each other, so what all rows have in common is next to nothing
    new = np.log(predictor.predict(X.assign(suite="new"))["score"])
    assert new.std() < 0.5 * np.log(y["score"]).std()


def test_a_table_without_a_column_that_counts_is_answered_by_its_mean() -> None:
    X, y = pd.DataFrame({"kind": pd.Series(["a", "b", "a", "b"], dtype="str")}), pd.DataFrame({"score": [1, 2, 2, 4]})
    columns = [Column("kind", Kind.TEXT, Role.FEATURE, "all")]
    assert np.allclose(Lasso().fit(X, y, columns=columns).predict(X), 2.0)
