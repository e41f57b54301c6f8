"""Elastic net: both penalties are the library's, columns that say the same share a weight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import ElasticNet

from perfcast.predictors.base import load_predictor
from perfcast.predictors.elastic_net import ElasticNetPredictor
from perfcast.predictors.lasso import LassoPredictor


def data(rows: int = 200, noise: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 10)), columns=list("abcdefghij"))
    return X, pd.DataFrame({"score": np.exp(0.3 * X["a"] - 0.2 * X["b"] + noise * rng.normal(size=rows))})


@pytest.mark.parametrize("ratio", [0.1, 0.9])
def test_agrees_with_scikit_learn(ratio: float) -> None:
    X, y = data(noise=0.1)
    inputs, log_y = X.to_numpy() + 3.0, np.log(y["score"].to_numpy())
    reference = ElasticNet(alpha=0.05, l1_ratio=ratio, tol=1e-10).fit(inputs, log_y)
    found = ElasticNetPredictor()._path(inputs, log_y, [0.05], ratio)[0]
    np.testing.assert_allclose(found, [reference.intercept_, *reference.coef_], atol=2e-3)


def test_equal_columns_share_a_weight_that_the_lasso_gives_to_one() -> None:
    X, y = data()
    X["a_again"] = X["a"]
    shared = ElasticNetPredictor(default_alpha=0.01, l1_ratios=(0.5,)).fit(X, y)
    single = LassoPredictor(default_alpha=0.01).fit(X, y)
    first, again = (np.array(shared.weights_["score"][""])[[1, 2]]).tolist()
    assert first == pytest.approx(again, abs=0.01)
    assert first > 0.1
    one, none = sorted(np.abs(single.weights_["score"][""])[[1, 2]], reverse=True)
    assert one > 0.2
    assert none < 1e-9


def test_penalty_and_ratio_are_chosen_together_on_the_rows_set_aside(tmp_path: Path) -> None:
    X, y = data(noise=0.3)
    valid = np.arange(len(X)) >= 150
    predictor = ElasticNetPredictor(alphas=(0.01, 0.1), l1_ratios=(0.1, 0.9)).fit(X, y, valid=valid)
    pairs = [(alpha, ratio) for alpha in (0.01, 0.1) for ratio in (0.1, 0.9)]
    errors = []
    for alpha, ratio in pairs:
        one = ElasticNetPredictor(alphas=(alpha,), l1_ratios=(ratio,), default_alpha=alpha).fit(X[~valid], y[~valid])
        errors.append(np.abs(np.log(one.predict(X[valid]) / y[valid])).to_numpy().mean())
    best = pairs[int(np.argmin(errors))]
    assert (predictor.alphas_["score"][""], predictor.l1_ratios_["score"][""]) == best
    predictor.save(tmp_path)
    loaded = load_predictor(tmp_path)
    assert isinstance(loaded, ElasticNetPredictor)
    assert loaded.l1_ratios_ == predictor.l1_ratios_


def test_without_rows_to_choose_by_the_default_penalty_and_the_first_ratio_are_used() -> None:
    X, y = data()
    predictor = ElasticNetPredictor(default_alpha=0.02, l1_ratios=(0.3, 0.7)).fit(X, y)
    assert set(predictor.alphas_["score"].values()) == {0.02}
    assert set(predictor.l1_ratios_["score"].values()) == {0.3}
