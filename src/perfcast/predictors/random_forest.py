"""A forest of regression trees on log targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import RandomForestRegressor

from perfcast.encoding.dense import TreeEncoder, feature_columns
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import SMALL_TABLE, measured_rows
from perfcast.predictors.base import Predictor

_LEAF = -1


class RandomForestPredictor(Predictor):
    """The mean of many deep trees, each grown on a resampled table with a random share of the features per split.

    One forest per target; the task is a feature. Nothing is chosen by the `valid` rows: all training rows are used.
    Fewer than 50 rows are learned without resampling.
    Saved as a Parquet table with one row per node, about 5 bytes each: 100 trees of 33,000 rows are roughly 3 million
    nodes. scikit-learn grows the trees and this module walks them, so nothing has to be unpickled.
    Source: Breiman, 2001, Machine Learning 45(1).
    """

    encoder_: TreeEncoder
    forests_: list[pa.Table]

    def __init__(
        self,
        *,
        trees: int = 100,
        feature_fraction: float = 0.33,
        leaf_rows: int = 1,
        bootstrap: bool = True,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.trees = trees
        self.feature_fraction = feature_fraction
        self.leaf_rows = leaf_rows
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        self.encoder_ = TreeEncoder(fill=True).fit(X, feature_columns(self.columns_, task=True))
        encoded = self.encoder_.transform(X).astype(np.float32)
        self.forests_ = []
        for index, rows in enumerate(measured_rows(log_y, self.targets_)):
            forest = RandomForestRegressor(
                n_estimators=self.trees,
                max_features=self.feature_fraction,
                min_samples_leaf=self.leaf_rows,
                bootstrap=self.bootstrap and int(rows.sum()) >= SMALL_TABLE,
                n_jobs=self.n_jobs,
                random_state=self.random_state,
            )
            self.forests_.append(_nodes(forest.fit(encoded[rows], log_y[rows, index])))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded = self.encoder_.transform(X).astype(np.float32)
        return np.column_stack([_walk(forest, encoded) for forest in self.forests_])

    def _save(self, folder: Path) -> None:
        write_json(folder / "encoder.json", self.encoder_.to_state())
        for index, forest in enumerate(self.forests_):
            pq.write_table(forest, folder / f"forest_{index}.parquet", compression="zstd")

    def _load(self, folder: Path) -> None:
        columns = feature_columns(self.columns_, task=True)
        self.encoder_ = TreeEncoder.from_state(read_json(folder / "encoder.json"), columns)
        self.forests_ = [pq.read_table(folder / f"forest_{index}.parquet") for index in range(len(self.targets_))]


def _nodes(forest: RandomForestRegressor) -> pa.Table:
    """Return the nodes of all trees, each tree's in depth-first order, so a left child follows its parent.

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


def _walk(nodes: pa.Table, encoded: np.ndarray) -> np.ndarray:
    """Return the mean leaf value over the trees. Shapes: encoded (n, features) float32 -> (n,)."""
    feature, number, right = (nodes[name].to_numpy() for name in ("feature", "number", "right"))
    total = np.zeros(len(encoded))
    roots = np.flatnonzero(nodes["root"].to_numpy())
    for root in roots:
        at = np.full(len(encoded), root)
        inside = np.flatnonzero(feature[at] != _LEAF)
        while len(inside):
            node = at[inside]
            goes_left = encoded[inside, feature[node]] <= number[node]
            at[inside] = node + np.where(goes_left, 1, right[node])
            inside = inside[feature[at[inside]] != _LEAF]
        total += number[at]
    return total / len(roots)
