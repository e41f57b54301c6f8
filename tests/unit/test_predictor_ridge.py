"""Ridge: the penalty is chosen on the rows set aside, the solution is the closed form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model

from perfcast.predictors.linear import Ridge
from perfcast.schema import Column, Kind, Role, Tag


def data(rows: int = 200, noise: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 30)), columns=[f"x{index:02d}" for index in range(30)])
    return X, pd.DataFrame({"score": np.exp(0.3 * X["x00"] - 0.2 * X["x01"] + noise * rng.normal(size=rows))})


def test_the_penalty_is_per_row() -> None:
    X, y = data(noise=0.1)
    predictor = Ridge(default_alpha=0.1).fit(X, y)
    inputs = predictor.encoder_.transform(X)
    reference = linear_model.Ridge(alpha=0.1 * len(X), solver="cholesky").fit(inputs, np.log(y["score"]))
    np.testing.assert_allclose(predictor.weights_["score"][""], [reference.intercept_, *reference.coef_], atol=1e-10)


def test_more_columns_than_rows_is_solved() -> None:
    X, y = data(rows=8)
    predictor = Ridge().fit(X, y)
    assert np.isfinite(predictor.predict(X)).all(axis=None)


@pytest.mark.parametrize(("noise", "strongest"), [(0.0, False), (3.0, True)])
def test_the_penalty_grows_with_the_noise(noise: float, strongest: bool) -> None:
    X, y = data(60, noise)
    predictor = Ridge(alphas=(1e-5, 1.0)).fit(X, y, valid=np.arange(60) >= 40)
    assert (predictor.penalties_["score"][""]["alpha"] == 1.0) is strongest


def test_without_rows_to_choose_by_the_default_penalty_is_used() -> None:
    X, y = data()
    penalties = Ridge(default_alpha=0.5).fit(X, y).penalties_["score"].values()
    assert list(penalties) == [{"alpha": 0.5}] * 2


def test_rows_set_aside_are_learned_too() -> None:
    X, y = data()
    valid = np.arange(len(X)) >= 150
    whole = Ridge(alphas=(0.01,)).fit(X, y, valid=valid)
    plain = Ridge(default_alpha=0.01).fit(X, y)
    pd.testing.assert_frame_equal(whole.predict(X), plain.predict(X))


def test_every_task_has_weights_of_its_own() -> None:
    X, y = data()
    X = X.assign(suite=np.where(np.arange(len(X)) % 2 == 0, "rate", "speed"))
    y = y.where(X["suite"] == "rate", 1 / y, axis=0)
    columns = [
        *[Column(name, Kind.NUMERICAL, Role.FEATURE, "all") for name in X.columns if name != "suite"],
        Column("suite", Kind.CATEGORICAL, Role.FEATURE, "all", tags=(Tag.TASK,)),
    ]
    predictor = Ridge(default_alpha=1e-6).fit(X, y, columns=columns)
    assert np.abs(np.log(predictor.predict(X) / y)).to_numpy().max() < 1e-3
