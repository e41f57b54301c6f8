"""What forests of regression trees share: models per task, nodes as tables, the walk from root to leaf."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perfcast.encoding.dense import TreeEncoder, feature_columns
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import SMALL_TABLE, answering, measured_rows, task_groups, task_labels
from perfcast.predictors.base import Predictor

_LEAF = -1

_GRAIN = 2.0**-24
"""Trees grow from log targets in multiples of this: their sums are exact in any order, so two splits that part the same
rows tie exactly. Else the last bits of a target, which differ between processors, choose between them."""


class ForestPredictor(Predictor):
    """The mean of many deep trees, each grown with randomness of its own.

    One forest per target and task of at least `task_rows` rows; smaller tasks share a forest of all rows in which the
    task is a feature. Nothing is chosen by the `valid` rows: all training rows are used. With `bootstrap` every tree
    sees a resampled table, except that fewer than 50 rows are never resampled. `depth`, unless None, bounds the splits
    between root and leaf.
    Saved as Parquet tables with one row per node, so nothing has to be unpickled: scikit-learn grows the trees, this
    module walks them. A subclass says which forest in `_grower`, and imports scikit-learn there: a forecast needs none.
    """

    encoder_: TreeEncoder
    models_: list[list[str]]
    forests_: list[list[pa.Table]]

    def __init__(
        self,
        *,
        trees: int = 100,
        feature_fraction: float = 0.5,
        leaf_rows: int = 1,
        depth: int | None = None,
        bootstrap: bool = False,
        task_rows: int = 500,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.trees = trees
        self.feature_fraction = feature_fraction
        self.leaf_rows = leaf_rows
        self.depth = depth
        self.bootstrap = bootstrap
        self.task_rows = task_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        self.encoder_ = TreeEncoder(fill=True).fit(X, feature_columns(self.columns_, task=True))
        encoded, tasks = self.encoder_.transform(X).astype(np.float32), task_labels(X, self.columns_)
        self.models_, self.forests_ = [], []
        for index, rows in enumerate(measured_rows(log_y, self.targets_)):
            groups = task_groups(tasks, rows, self.task_rows)
            self.models_.append(list(groups))
            self.forests_.append([self._grow(encoded[group], log_y[group, index]) for group in groups.values()])

    @abstractmethod
    def _grower(self, **settings: Any) -> Any:
        """Return an unfitted forest of scikit-learn."""

    def _grow(self, encoded: np.ndarray, log_y: np.ndarray) -> pa.Table:
        forest = self._grower(
            n_estimators=self.trees,
            max_features=self.feature_fraction,
            min_samples_leaf=self.leaf_rows,
            max_depth=self.depth,
            bootstrap=self.bootstrap and len(encoded) >= SMALL_TABLE,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        return forest_nodes(forest.fit(encoded, np.rint(log_y / _GRAIN) * _GRAIN))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X).astype(np.float32), task_labels(X, self.columns_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._questions(tasks):
            forests = self.forests_[index]
            used = answering(task, self.models_[index])
            logs[rows, index] = np.mean([walk_forest(forests[model], encoded[rows]) for model in used], axis=0)
        return logs

    def _save(self, folder: Path) -> None:
        write_json(folder / "forests.json", {"encoder": self.encoder_.to_state(), "models": self.models_})
        for target, forests in enumerate(self.forests_):
            for model, forest in enumerate(forests):
                pq.write_table(forest, folder / f"forest_{target}_{model}.parquet", compression="zstd")

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "forests.json")
        self.encoder_ = TreeEncoder.from_state(state["encoder"], feature_columns(self.columns_, task=True))
        self.models_ = state["models"]
        self.forests_ = [
            [pq.read_table(folder / f"forest_{target}_{model}.parquet") for model in range(len(models))]
            for target, models in enumerate(self.models_)
        ]


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
