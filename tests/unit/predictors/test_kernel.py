"""Support vector regression: the kernel computed here gives the library's prediction, and does not extrapolate."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.svm import SVR

from perfcast.predictors.kernel import _BLOCK, SvmPredictor
from perfcast.schema.table import Column, Kind, Role, Tag


def data(rows: int = 200, noise: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    return X, pd.DataFrame({"score": np.exp(2.0 + np.sin(X["a"]) + X["b"] + noise * rng.normal(size=rows))})


def test_prediction_equals_scikit_learns_own_kernel() -> None:
    X, y = data()
    log_y = np.log(y["score"].to_numpy())
    predictor = SvmPredictor(default_C=5.0, default_gamma=0.3, epsilon=0.05).fit(X, y)
    inputs = predictor.encoder_.transform(X)
    standard = (log_y - log_y.mean()) / log_y.std()
    reference = SVR(C=5.0, gamma=0.3 / inputs.var(axis=0).sum(), epsilon=0.05).fit(inputs, standard)
    new = pd.DataFrame(np.random.default_rng(1).normal(size=(50, 4)), columns=list("abcd"))
    expected = log_y.mean() + log_y.std() * reference.predict(predictor.encoder_.transform(new))
    # two solutions within the solver's tolerance of 0.001 standard deviations
    np.testing.assert_allclose(np.log(predictor.predict(new)["score"]), expected, atol=0.01)


def test_learns_a_curve_to_about_the_width_of_the_tube() -> None:
    X, y = data(400)
    errors = np.log(SvmPredictor(default_C=100.0, epsilon=0.02).fit(X, y).predict(X)["score"] / y["score"])
    assert errors.abs().max() < 2 * 0.02 * np.log(y["score"]).std()


def test_far_from_what_it_learned_the_prediction_is_a_constant() -> None:
    X, y = data()
    predictor = SvmPredictor(default_gamma=1.0, clip=1e6).fit(X, y)
    far = predictor.predict(pd.DataFrame({"a": [1e3, -1e3], "b": 1e3, "c": 1e3, "d": 1e3}))["score"]
    assert far[0] == far[1]
    assert y["score"].min() < far[0] < y["score"].max()


def test_no_more_than_the_given_rows_are_learned_and_the_seed_draws_them() -> None:
    X, y = data(noise=0.5)
    first, second = (SvmPredictor(max_samples=50, epsilon=0.0, random_state=seed).fit(X, y) for seed in (0, 1))
    assert 40 < len(first.models_["score"][""].vectors) <= 50
    assert not first.predict(X).equals(second.predict(X))


def test_cost_and_gamma_are_chosen_on_validation_rows() -> None:
    X, y = data(300, noise=0.3)
    validation = np.arange(len(X)) >= 200
    C_values, gammas = (0.01, 10.0), (0.1, 30.0)
    errors = {}
    for C in C_values:
        for gamma in gammas:
            fitted = SvmPredictor(default_C=C, default_gamma=gamma).fit(X[~validation], y[~validation])
            errors[C, gamma] = np.abs(np.log(fitted.predict(X[validation]) / y[validation])).to_numpy().mean()
    C, gamma = min(errors, key=errors.__getitem__)
    assert (C, gamma) == (10.0, 0.1)
    chosen = SvmPredictor(C=C_values, gamma=gammas).fit(X, y, validation=validation)
    expected = SvmPredictor(default_C=C, default_gamma=gamma).fit(X, y)
    pd.testing.assert_frame_equal(chosen.predict(X), expected.predict(X))


def test_a_row_is_answered_alike_in_every_block() -> None:
    X, y = data(50)
    predictor = SvmPredictor().fit(X, y)
    many = pd.concat([X] * (_BLOCK // 50 + 2), ignore_index=True)
    repeated = predictor.predict(many)["score"].to_numpy().reshape(-1, 50)
    assert (repeated == repeated[0]).all()


def test_every_task_has_a_model_of_its_own() -> None:
    X, y = data(300)
    X = X.assign(suite=np.where(np.arange(len(X)) % 2 == 0, "rate", "speed"))
    y = y.where(X["suite"] == "rate", 1 / y, axis=0)
    columns = [
        *[Column(name, Kind.NUMERICAL, Role.FEATURE, "all") for name in "abcd"],
        Column("suite", Kind.CATEGORICAL, Role.KEY, "all", tags=(Tag.TASK,)),
    ]
    predictor = SvmPredictor(default_C=100.0).fit(X, y, columns=columns)
    assert np.abs(np.log(predictor.predict(X) / y)).to_numpy().max() < 0.1


def test_a_table_without_a_column_that_counts_is_answered_by_a_constant() -> None:
    X, y = pd.DataFrame({"note": pd.Series(["a", "b", "a", "b"], dtype="str")}), pd.DataFrame({"score": [1, 2, 2, 4]})
    columns = [Column("note", Kind.TEXT, Role.FEATURE, "all")]
    assert np.allclose(SvmPredictor().fit(X, y, columns=columns).predict(X), 2.0, rtol=0.05)
