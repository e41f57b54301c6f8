"""Elastic net: both penalties are the library's, columns that say the same share a weight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model

from perfcast.predictors.base import load_predictor
from perfcast.predictors.linear import ElasticNet, Lasso


def data(rows: int = 200, noise: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 10)), columns=list("abcdefghij"))
    return X, pd.DataFrame({"score": np.exp(0.3 * X["a"] - 0.2 * X["b"] + noise * rng.normal(size=rows))})


@pytest.mark.parametrize("ratio", [0.1, 0.9])
def test_agrees_with_scikit_learn(ratio: float) -> None:
    X, y = data(noise=0.1)
    predictor = ElasticNet(default_alpha=0.05, l1_ratios=(ratio,)).fit(X, y)
    inputs = predictor.encoder_.transform(X)
    reference = linear_model.ElasticNet(alpha=0.05, l1_ratio=ratio, tol=1e-10).fit(inputs, np.log(y["score"]))
    np.testing.assert_allclose(predictor.weights_["score"][""], [reference.intercept_, *reference.coef_], atol=2e-3)


def test_equal_columns_share_a_weight_that_the_lasso_gives_to_one() -> None:
    X, y = data()
    X["a_again"] = X["a"]
    shared = ElasticNet(default_alpha=0.01, l1_ratios=(0.5,)).fit(X, y)
    single = Lasso(default_alpha=0.01).fit(X, y)
    first, again = (np.array(shared.weights_["score"][""])[[1, 2]]).tolist()
    assert first == pytest.approx(again, abs=0.01)
    assert first > 0.1
    one, none = sorted(np.abs(single.weights_["score"][""])[[1, 2]], reverse=True)
    assert one > 0.2
    assert none < 1e-9


def test_penalty_and_ratio_are_chosen_together_on_the_rows_set_aside(tmp_path: Path) -> None:
    X, y = data(noise=0.3)
    valid = np.arange(len(X)) >= 150
    predictor = ElasticNet(alphas=(0.01, 0.1), l1_ratios=(0.1, 0.9)).fit(X, y, valid=valid)
    pairs = [(alpha, ratio) for alpha in (0.01, 0.1) for ratio in (0.1, 0.9)]
    errors = []
    for alpha, ratio in pairs:
        one = ElasticNet(alphas=(alpha,), l1_ratios=(ratio,), default_alpha=alpha).fit(X[~valid], y[~valid])
        errors.append(np.abs(np.log(one.predict(X[valid]) / y[valid])).to_numpy().mean())
    best = pairs[int(np.argmin(errors))]
    assert predictor.penalties_["score"][""] == {"alpha": best[0], "l1_ratio": best[1]}
    predictor.save(tmp_path)
    loaded = load_predictor(tmp_path)
    assert isinstance(loaded, ElasticNet)
    assert loaded.penalties_ == predictor.penalties_


def test_without_rows_to_choose_by_the_default_penalty_and_the_first_ratio_are_used() -> None:
    X, y = data()
    predictor = ElasticNet(default_alpha=0.02, l1_ratios=(0.3, 0.7)).fit(X, y)
    assert list(predictor.penalties_["score"].values()) == [{"alpha": 0.02, "l1_ratio": 0.3}] * 2
