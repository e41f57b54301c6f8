"""Gaussian process regression: agreement with scikit-learn, robustness to outliers, ARD length scales."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from perfcast.predictors.gaussian_process import (
    _BLOCK,
    GaussianProcessPredictor,
    OutputSample,
    fit_inverse_length_scales,
)
from perfcast.schema.table import Column, Kind, Role, Tag


def data(rows: int = 200, noise: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    return X, pd.DataFrame({"score": np.exp(2.0 + np.sin(X["a"]) + noise * rng.normal(size=rows))})


def test_predictions_equal_those_of_scikit_learn() -> None:
    X, y = data()
    log_y = np.log(y["score"].to_numpy())
    predictor = GaussianProcessPredictor(noise=0.05, n_reweightings=0).fit(X, y)
    points = predictor._project(predictor.encoder_.transform(X))
    reference = GaussianProcessRegressor(Matern(np.sqrt(3.0), nu=1.5), alpha=0.05, optimizer=None)
    reference.fit(points, log_y - np.median(log_y))
    new = pd.DataFrame(np.random.default_rng(1).normal(size=(50, 4)), columns=list("abcd"))
    expected = np.median(log_y) + reference.predict(predictor._project(predictor.encoder_.transform(new)))
    np.testing.assert_allclose(np.log(predictor.predict(new)["score"]), expected, atol=1e-6)


def test_irrelevant_variable_has_a_longer_length_scale() -> None:
    X, y = data(400, noise=0.05)
    output = OutputSample.standardize(np.arange(len(X)), np.log(y["score"].to_numpy()))
    assert output is not None
    scales = fit_inverse_length_scales(X.to_numpy(), list("abcd"), [output], steps=60, batch_size=200, seed=0)
    assert scales[0] > 3 * scales[1:].max()


def test_levels_of_a_category_share_a_length_scale_and_an_indicator_has_another() -> None:
    X, y = data(300)
    X["kind"] = np.where(X["b"] > 0, "x", "y")
    X.loc[::7, "c"] = np.nan
    predictor = GaussianProcessPredictor(length_scale_steps=20, n_components=100).fit(X, y)
    variables = predictor.encoder_.variables_
    assert variables == ["a", "b", "c", "c=missing", "d", "kind", "kind"]
    norms = np.linalg.norm(predictor.projection_, axis=1)
    assert norms[5] == pytest.approx(norms[6])
    assert norms[2] != pytest.approx(norms[3])


def test_outlier_has_less_influence_when_reweighted() -> None:
    X, y = data(300)
    wrong = y.copy()
    wrong.loc[::30, "score"] *= 3.0
    errors = {}
    for count in (0, 2):
        prediction = GaussianProcessPredictor(n_reweightings=count).fit(X, wrong).predict(X)
        errors[count] = np.abs(np.log(prediction / y)).median().item()
    assert errors[2] < errors[0] / 1.5


def test_prediction_far_from_training_rows_is_the_median() -> None:
    X, y = data()
    far = pd.DataFrame({"a": [1e3], "b": 1e3, "c": 1e3, "d": 1e3})
    predictor = GaussianProcessPredictor(clip=1e6).fit(X, y)
    assert predictor.predict(far)["score"][0] == pytest.approx(np.exp(np.log(y["score"]).median()))


def test_max_samples_bounds_the_rows_and_the_seed_draws_them() -> None:
    X, y = data(noise=0.5)
    first, second = (GaussianProcessPredictor(max_samples=50, random_state=seed).fit(X, y) for seed in (0, 1))
    assert len(first.processes_["score"][""].points) == 50
    assert not first.predict(X).equals(second.predict(X))


def test_every_task_has_a_process_and_an_unseen_one_that_of_all_rows() -> None:
    X, y = data(400)
    X["suite"] = np.where(np.arange(400) % 4, "large", "small")
    y.loc[X["suite"] == "small", "score"] *= 5.0
    columns = [Column(name, Kind.NUMERICAL, Role.FEATURE, "all") for name in "abcd"]
    columns.append(Column("suite", Kind.CATEGORICAL, Role.KEY, "all", tags=(Tag.TASK,)))
    predictor = GaussianProcessPredictor(max_pooled_samples=60).fit(X, y, columns=columns)
    sizes = {name.rstrip("\x1f"): len(process.points) for name, process in predictor.processes_["score"].items()}
    assert sizes == {"large": 300, "small": 100, "\x1e": 60}
    assert np.abs(np.log(predictor.predict(X) / y)).median().item() < 0.05
    assert np.isfinite(predictor.predict(X.assign(suite="other"))).all(axis=None)


def test_predictions_are_independent_of_the_number_of_rows() -> None:
    X, y = data()
    predictor = GaussianProcessPredictor(length_scale_steps=5).fit(X, y)
    many = pd.concat([X] * (_BLOCK // len(X) + 2), ignore_index=True)
    assert len(many) > _BLOCK
    np.testing.assert_allclose(predictor.predict(many)[-len(X) :], predictor.predict(X), rtol=1e-12)


@pytest.mark.parametrize("logs", [np.zeros(20), np.arange(5.0)], ids=["all equal", "few"])
def test_output_with_few_or_equal_rows_is_none(logs: np.ndarray) -> None:
    assert OutputSample.standardize(np.arange(len(logs)), logs) is None


def test_length_scales_are_equal_without_outputs() -> None:
    scales = fit_inverse_length_scales(np.eye(4), list("abcd"), [], steps=10, batch_size=10, seed=0)
    assert (scales == scales[0]).all()
