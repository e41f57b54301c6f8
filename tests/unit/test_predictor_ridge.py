"""Ridge: the penalty is chosen on the rows set aside, the solution is the closed form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from perfcast.predictors.ridge import RidgePredictor, _solve
from perfcast.schema import Column, Kind, Role, Tag


def data(rows: int = 200, noise: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 30)), columns=[f"x{index:02d}" for index in range(30)])
    return X, pd.DataFrame({"score": np.exp(0.3 * X["x00"] - 0.2 * X["x01"] + noise * rng.normal(size=rows))})


def test_agrees_with_scikit_learn() -> None:
    X, y = data()
    inputs, log_y = X.to_numpy(), np.log(y["score"].to_numpy())
    reference = Ridge(alpha=0.1 * len(X), solver="cholesky").fit(inputs, log_y)
    found = _solve(inputs, log_y, [0.1])[0]
    np.testing.assert_allclose(found, [reference.intercept_, *reference.coef_], atol=1e-10)


def test_more_columns_than_rows_is_solved() -> None:
    X, y = data(rows=8)
    predictor = RidgePredictor().fit(X, y)
    assert np.isfinite(predictor.predict(X)).all(axis=None)


@pytest.mark.parametrize(("noise", "strongest"), [(0.0, False), (3.0, True)])
def test_the_penalty_grows_with_the_noise(noise: float, strongest: bool) -> None:
    X, y = data(60, noise)
    predictor = RidgePredictor(alphas=(1e-5, 1.0)).fit(X, y, valid=np.arange(60) >= 40)
    assert (predictor.alphas_["score"][""] == 1.0) is strongest


def test_without_rows_to_choose_by_the_default_penalty_is_used() -> None:
    X, y = data()
    assert set(RidgePredictor(default_alpha=0.5).fit(X, y).alphas_["score"].values()) == {0.5}


def test_rows_set_aside_are_learned_too() -> None:
    X, y = data()
    valid = np.arange(len(X)) >= 150
    whole = RidgePredictor(alphas=(0.01,)).fit(X, y, valid=valid)
    plain = RidgePredictor(default_alpha=0.01).fit(X, y)
    pd.testing.assert_frame_equal(whole.predict(X), plain.predict(X))


def test_every_task_has_weights_of_its_own() -> None:
    X, y = data()
    X = X.assign(suite=np.where(np.arange(len(X)) % 2 == 0, "rate", "speed"))
    y = y.where(X["suite"] == "rate", 1 / y, axis=0)
    columns = [
        *[Column(name, Kind.NUMERICAL, Role.FEATURE, "all") for name in X.columns if name != "suite"],
        Column("suite", Kind.CATEGORICAL, Role.FEATURE, "all", tags=(Tag.TASK,)),
    ]
    predictor = RidgePredictor(default_alpha=1e-6).fit(X, y, columns=columns)
    assert np.abs(np.log(predictor.predict(X) / y)).to_numpy().max() < 1e-3
