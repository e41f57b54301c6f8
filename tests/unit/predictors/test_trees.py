"""Forests: the saved nodes give scikit-learn's prediction, and only random forests search thresholds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from perfcast.predictors.trees import ExtraTrees, ForestPredictor, RandomForest, forest_nodes, walk_forest


def data(rows: int = 300) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=rows), "b": rng.integers(0, 4, rows).astype(float)})
    return X, pd.DataFrame({"score": np.exp(np.sin(X["a"]) + X["b"])})


def test_walking_the_nodes_equals_scikit_learn() -> None:
    X, y = data()
    inputs = X.to_numpy(dtype=np.float32)
    forest = RandomForestRegressor(n_estimators=7, random_state=3).fit(inputs, y["score"])
    new = np.random.default_rng(1).normal(size=(100, 2)).astype(np.float32)
    np.testing.assert_allclose(walk_forest(forest_nodes(forest), new), forest.predict(new), rtol=1e-12)


def test_a_single_leaf_answers() -> None:
    X, y = data(3)
    y["score"] = 5.0
    assert np.allclose(RandomForest(n_estimators=2).fit(X, y).predict(X), 5.0)


@pytest.mark.parametrize("forest", [RandomForest(n_estimators=3, bootstrap=True), ExtraTrees(n_estimators=3)])
def test_another_seed_grows_another_forest(forest: ForestPredictor) -> None:
    X, y = data()
    new = pd.DataFrame({"a": np.linspace(-2, 2, 50), "b": 1.0})
    first, second = (forest.set_params(random_state=seed).fit(X, y).predict(new) for seed in (0, 1))
    assert not first.equals(second)


def test_the_saved_table_holds_every_node_once(tmp_path: Path) -> None:
    X, y = data()
    RandomForest(n_estimators=4).fit(X, y).save(tmp_path)
    nodes = pq.read_table(tmp_path / "model_0_0.parquet").to_pandas()
    leaf_count = int((nodes["feature"] == -1).sum())
    assert nodes["root"].sum() == 4
    assert len(nodes) == 2 * leaf_count - 4


def test_depth_bounds_the_leaves(tmp_path: Path) -> None:
    X, y = data()
    RandomForest(n_estimators=4, max_depth=2).fit(X, y).save(tmp_path)
    nodes = pq.read_table(tmp_path / "model_0_0.parquet").to_pandas()
    assert nodes["root"].cumsum().value_counts().max() <= 7


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


def test_extra_trees_equal_scikit_learn() -> None:
    X, y = data()
    reference = ExtraTreesRegressor(n_estimators=7, max_features=1.0, random_state=3)
    reference.fit(X.to_numpy(dtype=np.float32), np.rint(np.log(y["score"]) * 2.0**24) / 2.0**24)
    new = pd.DataFrame({"a": np.linspace(-2, 2, 50), "b": 1.0})
    predicted = np.log(ExtraTrees(n_estimators=7, max_features=1.0, random_state=3).fit(X, y).predict(new)["score"])
    np.testing.assert_allclose(predicted, reference.predict(new.to_numpy(dtype=np.float32)), rtol=1e-12)


def test_thresholds_lie_anywhere_between_two_values() -> None:
    X = pd.DataFrame({"a": [0.0, 0.0, 1.0, 1.0]})
    y = pd.DataFrame({"score": [1.0, 1.0, 9.0, 9.0]})

    def thresholds(kind: type[ForestPredictor]) -> set[float]:
        forests = [kind(n_estimators=1, random_state=seed).fit(X, y).models_[0][0] for seed in (0, 1)]
        return {forest["number"][0].as_py() for forest in forests}

    drawn, searched = thresholds(ExtraTrees), thresholds(RandomForest)
    assert searched == {0.5}
    assert len(drawn) == 2
    assert all(0.0 <= threshold < 1.0 for threshold in drawn)


def test_training_rows_are_known_by_heart_without_resampling() -> None:
    X, y = data()
    # to half of what targets are multiples of, in logarithms
    np.testing.assert_allclose(ExtraTrees(n_estimators=3).fit(X, y).predict(X), y, rtol=1.001 * 2.0**-25)
