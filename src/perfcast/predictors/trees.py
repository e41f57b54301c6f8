"""Forests of regression trees on log targets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from perfcast.predictors.task_rows import SMALL_TABLE
from perfcast.predictors.tree_models import TreesPredictor
from perfcast.utils.errors import UserError
from perfcast.utils.model_files import LARGEST

_LEAF = -1
_LARGEST_LOG = 250.0
"""Largest size of the logarithm of a target."""

_WALKS = 8192
"""Walks of a row through a tree that advance together; more leave the cache of a core."""

_GRAIN = 2.0**-24
"""Targets are rounded to multiples of this, so that their sums are exact in any order. Two splits that divide the rows
alike then tie exactly. Otherwise the last bits of a target would choose, and these differ between computers."""


@dataclass(kw_only=True, eq=False, repr=False)
class ForestPredictor(TreesPredictor):
    """Mean of many deep trees of scikit-learn, each grown with randomness of its own.

    Validation rows are training rows: nothing is chosen. Tables of fewer than 50 rows are never resampled, whatever
    `bootstrap` says.

    A forest is saved as a Parquet table of its nodes, and `walk_forest` predicts from it. The same forest through skops
    takes three times the space and two seconds more to load, which a cold prediction cannot spend.
    """

    regressor: ClassVar[str]
    """Name of the class of `sklearn.ensemble` that grows the trees."""

    suffix = ".parquet"
    impute = True

    max_features: float = 0.5
    min_samples_leaf: int = 1
    max_depth: int | None = None
    bootstrap: bool = False

    def _fit_model(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, validation: np.ndarray) -> pa.Table:
        import sklearn.ensemble  # a prediction does without this import, which takes a second

        inputs, targets = encoded[rows].astype(np.float32), np.rint(log_y[rows] / _GRAIN) * _GRAIN
        forest = getattr(sklearn.ensemble, self.regressor)(
            n_estimators=self.n_estimators,
            max_features=self.max_features,
            min_samples_leaf=self.min_samples_leaf,
            max_depth=self.max_depth,
            bootstrap=self.bootstrap and len(inputs) >= SMALL_TABLE,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        return forest_nodes(forest.fit(inputs, targets))

    def _predict_model(self, model: pa.Table, encoded: np.ndarray) -> np.ndarray:
        return walk_forest(model, encoded.astype(np.float32))

    def _write(self, model: pa.Table, path: Path) -> None:
        pq.write_table(model, path, compression="zstd")

    def _read(self, path: Path) -> pa.Table:
        return _read_forest(path, len(self.encoder_.columns_))


def _read_forest(path: Path, features: int) -> pa.Table:
    """Read the nodes of a forest; `walk_forest` ends in a leaf of their trees.

    Raises: UserError when a node has no feature, child or number that a forest can have.
    """
    nodes = pq.read_table(path)
    feature, number, right, root = (nodes[name].to_numpy() for name in ("feature", "number", "right", "root"))
    inner, place = feature != _LEAF, np.arange(len(feature))
    possible = (
        len(root) > 0
        and bool(root[0])
        and bool(((feature >= _LEAF) & (feature < features)).all())
        and bool((np.abs(number) <= LARGEST).all())
        and bool((np.abs(number[~inner]) <= _LARGEST_LOG).all())
        # children follow their parent, so every walk ends
        and bool((right[inner] > 1).all())
        and bool((place[inner] + right[inner] < len(feature)).all())
    )
    if not possible:
        fact = f"{path} has a node without a feature, a child or a number"
        raise UserError("a forest must be one that was fitted", fact, "train it again, or fetch it again")
    return nodes


class RandomForest(ForestPredictor):
    """Trees whose every split is the best one among a random share of the features.

    Source: Breiman, 2001, Machine Learning 45(1).
    """

    regressor = "RandomForestRegressor"


class ExtraTrees(ForestPredictor):
    """Extremely randomized trees: every split takes the best of several features, each cut at one random threshold.

    A prediction is therefore smoother in its inputs than that of a random forest.
    Source: Geurts, Ernst and Wehenkel, 2006, Machine Learning 63(1).
    """

    regressor = "ExtraTreesRegressor"


def forest_nodes(forest: Any) -> pa.Table:
    """Return the nodes of all trees of a scikit-learn forest, depth first, so a left child follows its parent.

    Shapes: one row per node; `feature` is -1 at a leaf, `number` the threshold or the leaf's log target, `right` the
    distance to the right child, `root` true at the first node of a tree.
    """
    parts = []
    for estimator in forest.estimators_:
        tree = estimator.tree_
        leaf = tree.children_left < 0
        position = np.arange(tree.node_count)
        parts.append(
            {
                "feature": np.where(leaf, _LEAF, tree.feature).astype(np.int32),
                "number": np.where(leaf, tree.value[:, 0, 0], tree.threshold),
                "right": np.where(leaf, 0, tree.children_right - position).astype(np.int32),
                "root": position == 0,
            }
        )
    return pa.table({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def walk_forest(nodes: pa.Table, encoded: np.ndarray) -> np.ndarray:
    """Return the mean leaf value over the trees. Shapes: encoded (n, features) float32 -> (n,).

    As many trees are walked at once as make `_WALKS` walks: operations on fewer cost the time of a call.
    """
    feature, number, right = (nodes[name].to_numpy() for name in ("feature", "number", "right"))
    roots = np.flatnonzero(nodes["root"].to_numpy())
    values, first = np.ascontiguousarray(encoded).ravel(), np.arange(len(encoded)) * encoded.shape[1]
    total = np.zeros(len(encoded))
    step = max(1, _WALKS // max(1, len(encoded)))
    for start in range(0, len(roots), step):
        trees = roots[start : start + step]
        at, row = np.repeat(trees, len(encoded)), np.tile(first, len(trees))
        inside = np.flatnonzero(feature[at] != _LEAF)
        while len(inside):
            node = at[inside]
            goes_left = values[row[inside] + feature[node]] <= number[node]
            node += np.where(goes_left, 1, right[node])
            at[inside] = node
            inside = inside[feature[node] != _LEAF]
        for values_at_leaf in number[at].reshape(
            len(trees), len(encoded)
        ):  # one after another, in the order of the trees
            total += values_at_leaf
    return total / len(roots)
