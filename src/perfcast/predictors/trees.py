"""Trees on log targets: one model per target and large task, and a shared one for small tasks; and forests."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import TreeEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import (
    SMALL_TABLE,
    choice_split,
    measured_rows,
    select_models,
    task_groups,
    task_labels,
)
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_json
from perfcast.utils.model_files import LARGEST, read_state


@dataclass(kw_only=True, eq=False, repr=False)
class TreesPredictor(Predictor):
    """Trees on log targets: a model per target and task of at least `min_samples_per_task` rows.

    Smaller tasks share a model of all rows, which has the task as a feature.
    Shapes of the abstract methods: encoded (n, columns) as `TreeEncoder` gives them, log_y (n,).
    """

    suffix: ClassVar[str]
    """Suffix of the file of a model."""
    impute: ClassVar[bool] = False
    """Whether the encoder fills in missing values."""

    n_estimators: int = 100
    min_samples_per_task: int = 500
    n_jobs: int = 1
    random_state: int = 0

    encoder_: TreeEncoder = field(init=False)
    groups_: list[list[str]] = field(init=False)
    """Names of the models of every target, as `task_groups` gives them."""
    models_: list[list[Any]] = field(init=False)

    @abstractmethod
    def _fit_model(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, validation: np.ndarray) -> Any:
        """Return the model of some rows as its file gives it back. Shapes: rows and validation (n,) bool."""

    @abstractmethod
    def _predict_model(self, model: Any, encoded: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _write(self, model: Any, path: Path) -> None: ...

    @abstractmethod
    def _read(self, path: Path) -> Any: ...

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.encoder_ = TreeEncoder(impute=self.impute).fit(X, feature_columns(self.columns_, task=True))
        encoded = self.encoder_.transform(X)
        tasks = task_labels(X, self.columns_)
        self.groups_ = []
        self.models_ = []
        for index, rows in enumerate(measured_rows(log_y, self.targets_)):
            groups = task_groups(tasks, rows, self.min_samples_per_task)
            self.groups_.append(list(groups))
            models = [self._fit_model(encoded, log_y[:, index], group, validation) for group in groups.values()]
            self.models_.append(models)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded = self.encoder_.transform(X)
        tasks = task_labels(X, self.columns_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            used = [self.models_[index][number] for number in select_models(task, self.groups_[index])]
            logs[rows, index] = np.mean([self._predict_model(model, encoded[rows]) for model in used], axis=0)
        return logs

    def _path(self, folder: Path, target: int, model: int) -> Path:
        return folder / f"model_{target}_{model}{self.suffix}"

    def _save(self, folder: Path) -> None:
        write_json(folder / "trees.json", {"encoder": self.encoder_.to_state(), "groups": self.groups_})
        for target, models in enumerate(self.models_):
            for number, model in enumerate(models):
                self._write(model, self._path(folder, target, number))

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "trees.json")
        self.encoder_ = TreeEncoder.from_state(state["encoder"], feature_columns(self.columns_, task=True))
        self.groups_ = state["groups"]
        self.models_ = [
            [self._read(self._path(folder, target, number)) for number in range(len(names))]
            for target, names in enumerate(self.groups_)
        ]


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
    takes six times the space and two seconds more to load, which a cold prediction cannot spend.
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

        inputs = encoded[rows].astype(np.float32)
        targets = np.rint(log_y[rows] / _GRAIN) * _GRAIN
        names = ("n_estimators", "max_features", "min_samples_leaf", "max_depth", "n_jobs", "random_state")
        options = {name: getattr(self, name) for name in names}
        options["bootstrap"] = self.bootstrap and len(inputs) >= SMALL_TABLE
        return forest_nodes(getattr(sklearn.ensemble, self.regressor)(**options).fit(inputs, targets))

    def _predict_model(self, model: pa.Table, encoded: np.ndarray) -> np.ndarray:
        return walk_forest(model, encoded.astype(np.float32))

    def _write(self, model: pa.Table, path: Path) -> None:
        number = model["number"].to_numpy()
        is_leaf = model["feature"].to_numpy() == _LEAF
        # rows reach a leaf in every tree, so most values repeat: one page has the distinct ones
        value = pa.array(number, mask=~is_leaf)
        threshold = pa.array(number.astype(np.float32), mask=is_leaf)
        pq.write_table(
            pa.table({"feature": model["feature"], "threshold": threshold, "value": value}),
            path,
            compression="zstd",
            compression_level=19,
            dictionary_pagesize_limit=1 << 26,
            use_dictionary=["feature", "value"],
            column_encoding={"threshold": "BYTE_STREAM_SPLIT"},
        )

    def _read(self, path: Path) -> pa.Table:
        return _read_forest(path, len(self.encoder_.columns_))


def _read_forest(path: Path, features: int) -> pa.Table:
    """Read the nodes of a forest; `walk_forest` ends in a leaf of their trees.

    Raises: UserError when a node has no feature, child or number that a forest can have.
    """
    stored = pq.read_table(path)
    feature = stored["feature"].to_numpy()
    is_leaf = feature == _LEAF
    number = np.where(is_leaf, *(stored[name].to_numpy().astype(float) for name in ("value", "threshold")))
    step = np.where(is_leaf, -1, 1)
    # subtrees that follow a node: its right child is the next node with as many, a root has fewer than all before it
    waiting = np.cumsum(step) - step
    order = np.argsort(waiting, kind="stable")
    right = np.zeros(len(step), dtype=np.int32)
    right[order[:-1]] = np.diff(order)
    root = np.diff(np.minimum.accumulate(waiting), prepend=1) < 0
    possible = (
        len(step) > 0
        and bool(((feature >= _LEAF) & (feature < features)).all())
        and bool((np.abs(number) <= np.where(is_leaf, _LARGEST_LOG, LARGEST)).all())
        # every tree is whole, so every walk ends
        and step.sum() == -root.sum()
    )
    if not possible:
        fact = f"{path} has a node without a feature, a child or a number"
        raise UserError("a forest must be one that was fitted", fact, "train it again, or fetch it again")
    right[is_leaf] = 0
    return pa.table({"feature": feature, "number": number, "right": right, "root": root})


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
    distance to the right child, `root` true at the first node of a tree. Inputs are float32, so a threshold is the
    largest float32 that is not above that of scikit-learn: every comparison stays the same.
    """
    parts = []
    for estimator in forest.estimators_:
        tree = estimator.tree_
        leaf = tree.children_left < 0
        position = np.arange(tree.node_count)
        threshold = tree.threshold.astype(np.float32)
        threshold = np.where(threshold > tree.threshold, np.nextafter(threshold, np.float32(-np.inf)), threshold)
        parts.append(
            {
                "feature": np.where(leaf, _LEAF, tree.feature).astype(np.int32),
                "number": np.where(leaf, tree.value[:, 0, 0], threshold.astype(float)),
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
    values = np.ascontiguousarray(encoded).ravel()
    first = np.arange(len(encoded)) * encoded.shape[1]
    total = np.zeros(len(encoded))
    step = max(1, _WALKS // max(1, len(encoded)))
    for start in range(0, len(roots), step):
        trees = roots[start : start + step]
        at = np.repeat(trees, len(encoded))
        row = np.tile(first, len(trees))
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


@dataclass(kw_only=True, eq=False, repr=False)
class BoostingPredictor(TreesPredictor):
    """Boosted trees on log targets.

    The number of trees is the best one on the validation rows, at most `n_estimators`; the search stops
    `early_stopping_rounds` after the best one. The booster is then fitted to all training rows with that number.
    Without validation rows, or with 0 rounds, it has `n_estimators` trees. Fewer than 50 rows are learned without
    sampling of rows and without `reg_lambda`. A fit is deterministic for a given `n_jobs`.

    A subclass implements the abstract methods with the estimator of a library.
    """

    n_estimators: int = 1000
    early_stopping_rounds: int = 50
    learning_rate: float = 0.1
    subsample: float = 0.8
    reg_lambda: float = 1.0

    @abstractmethod
    def _best_n_estimators(
        self, encoded: np.ndarray, log_y: np.ndarray, encoded_validation: np.ndarray, log_y_validation: np.ndarray
    ) -> int:
        """Return the number of trees with the smallest mean absolute log error on the validation rows."""

    @abstractmethod
    def _fit_booster(self, encoded: np.ndarray, log_y: np.ndarray, n_estimators: int) -> Any:
        """Return a booster as its file gives it back, so that a loaded model cannot differ."""

    def _fit_model(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, validation: np.ndarray) -> Any:
        n_estimators = self.n_estimators
        split = choice_split(rows, validation) if self.early_stopping_rounds else None
        if split is not None:
            fitting, choosing = split
            best = self._best_n_estimators(encoded[fitting], log_y[fitting], encoded[choosing], log_y[choosing])
            n_estimators = max(1, best)
        return self._fit_booster(encoded[rows], log_y[rows], n_estimators)

    def _regularization(self, rows: int) -> dict[str, float]:
        """Return the row sampling and the penalty for a training part of so many rows."""
        if rows < SMALL_TABLE:
            return {"subsample": 1.0, "reg_lambda": 0.0}
        return {"subsample": self.subsample, "reg_lambda": self.reg_lambda}
