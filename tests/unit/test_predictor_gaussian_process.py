"""Gaussian process regression: the library's answer, robust to entries far out, and distances by what matters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from perfcast.predictors.gaussian_process import _BLOCK, GaussianProcessPredictor, Question, learned_scales
from perfcast.schema.table import Column, Kind, Role, Tag


def data(rows: int = 200, noise: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    return X, pd.DataFrame({"score": np.exp(2.0 + np.sin(X["a"]) + noise * rng.normal(size=rows))})


def test_forecast_is_that_of_scikit_learns_process_with_the_same_distance() -> None:
    X, y = data()
    log_y = np.log(y["score"].to_numpy())
    predictor = GaussianProcessPredictor(noise=0.05, reweightings=0).fit(X, y)
    places = predictor._placed(predictor.encoder_.transform(X))
    reference = GaussianProcessRegressor(Matern(np.sqrt(3.0), nu=1.5), alpha=0.05, optimizer=None)
    reference.fit(places, log_y - np.median(log_y))
    new = pd.DataFrame(np.random.default_rng(1).normal(size=(50, 4)), columns=list("abcd"))
    expected = np.median(log_y) + reference.predict(predictor._placed(predictor.encoder_.transform(new)))
    np.testing.assert_allclose(np.log(predictor.predict(new)["score"]), expected, atol=1e-6)


def test_a_direction_that_says_nothing_counts_less() -> None:
    X, y = data(400, noise=0.05)
    question = Question.of(np.arange(len(X)), np.log(y["score"].to_numpy()))
    assert question is not None
    scales = learned_scales(X.to_numpy(), list("abcd"), [question], steps=60, rows=200, seed=0)
    assert scales[0] > 3 * scales[1:].max()


def test_levels_of_one_category_count_the_same_and_an_indicator_by_itself() -> None:
    X, y = data(300)
    X["kind"] = np.where(X["b"] > 0, "x", "y")
    X.loc[::7, "c"] = np.nan
    predictor = GaussianProcessPredictor(relevance_steps=20, components=100).fit(X, y)
    variables = predictor.encoder_.variables_
    assert variables == ["a", "b", "c", "c=missing", "d", "kind", "kind"]
    counts = np.linalg.norm(predictor.projection_, axis=1)
    assert counts[5] == pytest.approx(counts[6])
    assert counts[2] != pytest.approx(counts[3])


def test_an_entry_far_out_moves_its_neighbors_less_when_reweighted() -> None:
    X, y = data(300)
    wrong = y.copy()
    wrong.loc[::30, "score"] *= 3.0
    errors = {
        rounds: np.abs(np.log(GaussianProcessPredictor(reweightings=rounds).fit(X, wrong).predict(X) / y))
        .median()
        .item()
        for rounds in (0, 2)
    }
    assert errors[2] < errors[0] / 1.5


def test_far_from_what_it_learned_the_forecast_is_the_median() -> None:
    X, y = data()
    far = pd.DataFrame({"a": [1e3], "b": 1e3, "c": 1e3, "d": 1e3})
    predictor = GaussianProcessPredictor(clip=1e6).fit(X, y)
    assert predictor.predict(far)["score"][0] == pytest.approx(np.exp(np.log(y["score"]).median()))


def test_no_more_than_the_given_rows_are_learned_and_the_seed_draws_them() -> None:
    X, y = data(noise=0.5)
    first, second = (GaussianProcessPredictor(rows=50, random_state=seed).fit(X, y) for seed in (0, 1))
    assert len(first.processes_["score"][""].points) == 50
    assert not first.predict(X).equals(second.predict(X))


def test_every_task_has_its_process_and_one_never_seen_that_of_a_draw() -> None:
    X, y = data(400)
    X["suite"] = np.where(np.arange(400) % 4, "large", "small")
    y.loc[X["suite"] == "small", "score"] *= 5.0
    columns = [Column(name, Kind.NUMERICAL, Role.FEATURE, "all") for name in "abcd"]
    columns.append(Column("suite", Kind.CATEGORICAL, Role.KEY, "all", tags=(Tag.TASK,)))
    predictor = GaussianProcessPredictor(pooled_rows=60).fit(X, y, columns=columns)
    sizes = {name.rstrip("\x1f"): len(process.points) for name, process in predictor.processes_["score"].items()}
    assert sizes == {"large": 300, "small": 100, "\x1e": 60}
    assert np.abs(np.log(predictor.predict(X) / y)).median().item() < 0.05
    assert np.isfinite(predictor.predict(X.assign(suite="other"))).all(axis=None)


def test_blocks_do_not_change_a_forecast() -> None:
    X, y = data()
    predictor = GaussianProcessPredictor(relevance_steps=5).fit(X, y)
    many = pd.concat([X] * (_BLOCK // len(X) + 2), ignore_index=True)
    assert len(many) > _BLOCK
    np.testing.assert_allclose(predictor.predict(many)[-len(X) :], predictor.predict(X), rtol=1e-12)


@pytest.mark.parametrize("logs", [np.zeros(20), np.arange(5.0)], ids=["all equal", "few"])
def test_a_question_without_anything_to_learn_is_none(logs: np.ndarray) -> None:
    assert Question.of(np.arange(len(logs)), logs) is None


def test_without_a_question_every_variable_counts_the_same() -> None:
    scales = learned_scales(np.eye(4), list("abcd"), [], steps=10, rows=10, seed=0)
    assert (scales == scales[0]).all()
