"""Linear regressions: the library's weights, a penalty chosen on validation rows, weights of every task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model

from perfcast.predictors.linear import ElasticNet, Lasso, LinearPredictor, Ridge
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag

BOTH = pytest.mark.parametrize("predictor", [Ridge, Lasso])


def data(rows: int = 200, noise: float = 0.0, columns: int = 30) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, columns)), columns=[f"x{index:02d}" for index in range(columns)])
    return X, pd.DataFrame({"score": np.exp(0.3 * X["x00"] - 0.2 * X["x01"] + noise * rng.normal(size=rows))})


def weights(predictor: LinearPredictor) -> np.ndarray:
    return np.array(predictor.weights_["score"][""])


@pytest.mark.parametrize(
    ("predictor", "reference", "tolerance"),
    [
        # the library's ridge penalizes the sum over the 200 rows
        (Ridge(default_alpha=0.1), linear_model.Ridge(alpha=0.1 * 200, solver="cholesky"), 1e-10),
        (Lasso(default_alpha=0.1), linear_model.Lasso(alpha=0.1, tol=1e-10), 2e-3),
        (Lasso(default_alpha=0.001), linear_model.Lasso(alpha=0.001, tol=1e-10), 2e-3),
        (
            ElasticNet(default_alpha=0.05, l1_ratios=(0.9,)),
            linear_model.ElasticNet(alpha=0.05, l1_ratio=0.9, tol=1e-10),
            2e-3,
        ),
    ],
)
def test_weights_agree_with_scikit_learn(predictor: LinearPredictor, reference: Any, tolerance: float) -> None:
    X, y = data(noise=0.1)
    predictor.fit(X, y)
    reference.fit(predictor.encoder_.transform(X), np.log(y["score"]))
    np.testing.assert_allclose(weights(predictor), [reference.intercept_, *reference.coef_], atol=tolerance)


@BOTH
def test_more_columns_than_rows_are_solved(predictor: type[LinearPredictor]) -> None:
    X, y = data(rows=8)
    assert np.isfinite(predictor().fit(X, y).predict(X)).all(axis=None)


@BOTH
@pytest.mark.parametrize(("noise", "strongest"), [(0.0, False), (3.0, True)])
def test_the_penalty_grows_with_the_noise(predictor: type[LinearPredictor], noise: float, strongest: bool) -> None:
    X, y = data(60, noise)
    fitted = predictor(alphas=(1e-5, 1.0)).fit(X, y, validation=np.arange(60) >= 40)
    assert fitted.penalties_["score"][""] == {"alpha": 1.0 if strongest else 1e-5}


@pytest.mark.parametrize(
    ("predictor", "penalty"),
    [
        (Ridge(default_alpha=0.5), {"alpha": 0.5}),
        (ElasticNet(default_alpha=0.02, l1_ratios=(0.3, 0.7)), {"alpha": 0.02, "l1_ratio": 0.3}),
    ],
)
def test_the_default_penalty_is_used_without_validation_rows(
    predictor: LinearPredictor, penalty: dict[str, float]
) -> None:
    assert all(chosen == penalty for chosen in predictor.fit(*data()).penalties_["score"].values())


@BOTH
def test_validation_rows_are_learned_too(predictor: type[LinearPredictor]) -> None:
    X, y = data(noise=0.1)
    whole = predictor(alphas=(0.01,)).fit(X, y, validation=np.arange(len(X)) >= 150)
    plain = predictor(default_alpha=0.01).fit(X, y)
    pd.testing.assert_frame_equal(whole.predict(X), plain.predict(X))


@BOTH
def test_every_task_has_its_weights_and_a_new_one_those_of_all_rows(predictor: type[LinearPredictor]) -> None:
    X, y = data()
    X = X.assign(suite=np.where(np.arange(len(X)) % 2 == 0, "rate", "speed"))
    y = y.where(X["suite"] == "rate", 1 / y, axis=0)
    columns = [
        *[Column(name, Kind.NUMERICAL, Role.FEATURE, "all") for name in X.columns if name != "suite"],
        Column("suite", Kind.CATEGORICAL, Role.FEATURE, "all", tags=(Tag.TASK,)),
    ]
    fitted = predictor(default_alpha=1e-5).fit(X, y, columns=columns)
    assert np.abs(np.log(fitted.predict(X) / y)).to_numpy().max() < 1e-2
    # the two tasks mirror each other, so all rows together have next to no slope
    new = np.log(fitted.predict(X.assign(suite="new"))["score"])
    assert new.std() < 0.5 * np.log(y["score"]).std()


@BOTH
def test_without_a_column_the_prediction_is_the_mean(predictor: type[LinearPredictor]) -> None:
    X, y = pd.DataFrame({"kind": pd.Series(["a", "b", "a", "b"], dtype="str")}), pd.DataFrame({"score": [1, 2, 2, 4]})
    columns = [Column("kind", Kind.TEXT, Role.FEATURE, "all")]
    assert np.allclose(predictor().fit(X, y, columns=columns).predict(X), 2.0)


def test_the_lasso_gives_weights_only_to_columns_with_an_effect() -> None:
    X, y = data()
    slopes = weights(Lasso(default_alpha=0.05).fit(X, y))[1:]
    assert np.flatnonzero(slopes).tolist() == [0, 1]
    assert slopes[0] == pytest.approx(0.3 * X["x00"].std(ddof=0) - 0.05, abs=0.01)


def test_equal_columns_share_a_weight_that_the_lasso_gives_to_one() -> None:
    X, y = data(columns=10)
    X["x00_again"] = X["x00"]
    shared = weights(ElasticNet(default_alpha=0.01, l1_ratios=(0.5,)).fit(X, y))[[1, 2]]
    assert shared[0] == pytest.approx(shared[1], abs=0.01)
    assert shared[0] > 0.1
    smaller, larger = sorted(np.abs(weights(Lasso(default_alpha=0.01).fit(X, y))[[1, 2]]))
    assert larger > 0.2
    assert smaller < 1e-9


def test_alpha_and_l1_ratio_are_chosen_together_on_validation_rows(tmp_path: Path) -> None:
    X, y = data(noise=0.3, columns=10)
    validation = np.arange(len(X)) >= 150
    predictor = ElasticNet(alphas=(0.01, 0.1), l1_ratios=(0.1, 0.9)).fit(X, y, validation=validation)
    errors = {}
    for alpha, ratio in [(0.01, 0.1), (0.01, 0.9), (0.1, 0.1), (0.1, 0.9)]:
        alone = ElasticNet(l1_ratios=(ratio,), default_alpha=alpha).fit(X[~validation], y[~validation])
        errors[alpha, ratio] = np.abs(np.log(alone.predict(X[validation]) / y[validation])).to_numpy().mean()
    alpha, ratio = min(errors, key=errors.__getitem__)
    assert predictor.penalties_["score"][""] == {"alpha": alpha, "l1_ratio": ratio}
    predictor.save(tmp_path)
    loaded = load_predictor(tmp_path)
    assert isinstance(loaded, ElasticNet)
    assert loaded.penalties_ == predictor.penalties_
