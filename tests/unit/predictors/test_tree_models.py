"""Forests and boosted trees: the library's numbers, their number chosen on validation rows, models of tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from perfcast.config.predictor_conf import read_predictor
from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.boosting.xgboost import XgboostPredictor
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.predictors.task_rows import joined_labels
from perfcast.predictors.trees import BoostingPredictor, ExtraTrees, RandomForest, forest_nodes, walk_forest
from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.utils.errors import UserError

BOTH = pytest.mark.parametrize("kind", [LightgbmPredictor, XgboostPredictor])
LATE = np.arange(400) >= 300


def data(rows: int = 400, noise: float = 0.5) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 5)), columns=list("abcde"))
    return X, pd.DataFrame({"score": np.exp(X["a"] + noise * rng.normal(size=rows))})


def error(predictor: Predictor, X: pd.DataFrame, y: pd.DataFrame) -> float:
    return float(np.abs(np.log(predictor.predict(X) / y)).to_numpy().mean())


def count_trees(predictor: BoostingPredictor) -> int:
    model = predictor.models_[0][0]
    return int(model.num_trees() if isinstance(predictor, LightgbmPredictor) else model.num_boosted_rounds())


@BOTH
def test_trees_grow_until_validation_rows_get_worse_then_those_are_learned_too(kind: type[BoostingPredictor]) -> None:
    X, y = data()
    chosen = kind(n_estimators=300, early_stopping_rounds=10).fit(X, y, validation=LATE)
    best = count_trees(chosen)
    assert 1 <= best < 300
    few, same, more = (
        error(kind(n_estimators=number).fit(X[~LATE], y[~LATE]), X[LATE], y[LATE])
        for number in (max(1, best - 3), best, best + 5)
    )
    assert same <= min(few, more)
    assert error(chosen, X[LATE], y[LATE]) < same
    assert count_trees(kind(n_estimators=17).fit(X, y)) == 17
    assert count_trees(kind(n_estimators=40, early_stopping_rounds=0).fit(X, y, validation=LATE)) == 40


@pytest.mark.parametrize(
    "predictor",
    [
        LightgbmPredictor(n_estimators=20),
        XgboostPredictor(n_estimators=20),
        RandomForest(n_estimators=3, bootstrap=True),
        ExtraTrees(n_estimators=3),
    ],
)
def test_another_seed_grows_other_trees(predictor: Predictor) -> None:
    X, y = data()
    first, second = (predictor.set_params(random_state=seed).fit(X, y).predict(X + 0.1) for seed in (0, 1))
    assert not first.equals(second)


def test_a_saved_model_is_the_librarys_own_and_answers_without_this_project(tmp_path: Path) -> None:
    X, y = data()
    predictor = XgboostPredictor(n_estimators=20).fit(X, y)
    predictor.save(tmp_path)
    path = tmp_path / "model_0_0.json"
    assert "learner" in json.loads(path.read_text())
    alone = xgboost.Booster(model_file=path).predict(xgboost.DMatrix(X.to_numpy()))
    np.testing.assert_array_equal(np.exp(alone.astype(float)), predictor.predict(X)["score"])


@pytest.mark.parametrize("robust_loss", [{"objective": "huber", "alpha": 0.02}, {"objective": "regression_l1"}])
def test_a_robust_loss_follows_the_usual_level_and_not_a_few_far_results(robust_loss: dict[str, Any]) -> None:
    X = pd.DataFrame({"a": np.arange(400) // 200})
    y = pd.DataFrame({"score": np.where(np.arange(400) % 10, 1.0, 2.0) * np.exp(X["a"])})
    squared, robust = (
        np.log(LightgbmPredictor(n_estimators=500, **value).fit(X, y).predict(X)["score"].iloc[0])
        for value in ({}, robust_loss)
    )
    assert squared == pytest.approx(0.1 * np.log(2), abs=0.01)
    assert abs(robust) < 0.01


def test_predictions_are_the_models_own_whatever_their_order_and_however_many_are_asked_at_once() -> None:
    X, y = data()
    X.loc[::7, "b"] = np.nan
    predictor = LightgbmPredictor(n_estimators=230).fit(X, y)
    together = predictor.predict(X)["score"]
    np.testing.assert_allclose(np.log(together), predictor.models_[0][0].predict(X), rtol=1e-12)
    assert predictor.predict(X[::-1])["score"][::-1].tolist() == together.tolist()
    assert [predictor.predict(X[row : row + 1])["score"].iloc[0] for row in range(3)] == together[:3].tolist()


def test_a_small_table_with_few_columns_is_learned() -> None:
    """Trees of one column and many leaves isolate rows: their error was three times that of the bounded ones."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: np.exp(rng.uniform(0, 2, 120)) for name in ("cores", "mhz", "memory", "bandwidth")})
    y = X["cores"] * X["mhz"] ** 0.7 * X["memory"] ** 0.2 * np.exp(rng.normal(0, 0.03, 120))
    conf = read_predictor(Path(__file__).parents[3] / "conf", "lightgbm")
    small = LightgbmPredictor(**conf.settings("quick")["quick"]).fit(X[:96], y[:96])
    assert np.abs(small.predict(X[96:]) / y[96:] - 1).mean() < 0.12


def test_forests_equal_those_of_scikit_learn(tmp_path: Path) -> None:
    X, y = data(noise=0.0)
    inputs, new = X.to_numpy(dtype=np.float32), X + 0.1
    forest = RandomForestRegressor(n_estimators=7, random_state=3).fit(inputs, y["score"])
    questions = new.to_numpy(dtype=np.float32)
    np.testing.assert_allclose(walk_forest(forest_nodes(forest), questions), forest.predict(questions), rtol=1e-12)
    reference = ExtraTreesRegressor(n_estimators=7, max_features=1.0, random_state=3)
    reference.fit(inputs, np.rint(np.log(y["score"]) * 2.0**24) / 2.0**24)
    extra = ExtraTrees(n_estimators=7, max_features=1.0, random_state=3).fit(X, y)
    np.testing.assert_allclose(np.log(extra.predict(new)["score"]), reference.predict(questions), rtol=1e-12)
    # known by heart, to half of what targets are multiples of, in logarithms
    np.testing.assert_allclose(extra.predict(X), y, rtol=1.001 * 2.0**-25)
    assert np.allclose(RandomForest(n_estimators=2).fit(X[:3], 0 * y[:3] + 5).predict(X[:3]), 5.0), "a single leaf"
    shallow = RandomForest(n_estimators=4, max_depth=2).fit(X, y)
    shallow.save(tmp_path)
    loaded = load_predictor(tmp_path)
    assert loaded.models_[0][0].equals(shallow.models_[0][0])
    nodes = pq.read_table(tmp_path / "model_0_0.parquet")
    assert len(nodes) == 2 * (nodes["feature"].to_numpy() == -1).sum() - 4 <= 4 * 7
    pq.write_table(nodes[:-1], tmp_path / "model_0_0.parquet")
    (tmp_path / "digests.sha256").unlink()
    with pytest.raises(UserError, match="a forest must be one that was fitted"):
        load_predictor(tmp_path)


@pytest.mark.parametrize("forest", [RandomForest, ExtraTrees])
def test_the_last_bits_of_a_target_do_not_choose_between_equal_splits(forest) -> None:
    """Columns that part the training rows alike, and new rows differently."""
    rng = np.random.default_rng(0)
    rank = rng.permutation(120).astype(float)
    X = pd.DataFrame({name: sign * rank for name, sign in zip("abcdef", (1, -1, 1, -1, 1, -1), strict=True)})
    y = np.exp(np.sin(rank / 9) + rng.normal(scale=0.1, size=120))
    new = pd.DataFrame(rng.uniform(-120, 120, (300, 6)), columns=list("abcdef"))

    def predict(targets: np.ndarray) -> np.ndarray:
        made = forest(n_estimators=20, max_features=1.0).fit(X, pd.DataFrame({"score": targets})).predict(new)
        return np.log(made["score"].to_numpy())

    np.testing.assert_allclose(predict(y * (1 + rng.normal(scale=1e-9, size=120))), predict(y), atol=1e-6)


def test_labels_are_joined_without_collisions_and_unknown_is_not_equal() -> None:
    columns = [Column(name, Kind.CATEGORICAL, Role.KEY, "all") for name in ("x", "y")]
    first, second, third = joined_labels(pd.DataFrame({"x": ["ab", "a", None], "y": ["c", "bc", "c"]}), columns)
    assert first != second
    assert third is None


@pytest.mark.parametrize(
    "predictor", [LightgbmPredictor(n_estimators=300, colsample_bytree=1.0), RandomForest(n_estimators=10)]
)
@pytest.mark.parametrize(("min_samples", "models"), [(20, 2), (100, 2), (101, 1)])
def test_tasks_that_behave_opposite_are_learned_alone_and_together(
    predictor: LightgbmPredictor | RandomForest, min_samples: int, models: int
) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "suite": np.where(np.arange(200) % 2 == 0, "up", "down")})
    y = pd.DataFrame({"score": np.exp(np.where(X["suite"] == "up", X["x"], -X["x"]))})
    columns = [
        Column("suite", Kind.CATEGORICAL, Role.KEY, "all", tags=(Tag.TASK,)),
        Column("x", Kind.NUMERICAL, Role.FEATURE, "all"),
    ]
    predictor.set_params(min_samples_per_task=min_samples).fit(X, y, columns=columns)
    assert len(predictor.models_[0]) == models
    assert error(predictor, X, y) < 0.1
    assert np.isfinite(predictor.predict(X.assign(suite="new"))).all(axis=None)
