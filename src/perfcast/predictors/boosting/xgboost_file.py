"""Check of XGBoost's model files from outside: the library reads beyond its arrays where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.utils.errors import UserError
from perfcast.utils.model_files import LARGEST, read_state

_ARRAYS = (
    *("base_weights", "default_left", "left_children", "loss_changes", "parents", "right_children"),
    *("split_conditions", "split_indices", "split_type", "sum_hessian"),
)
_ROOT = 2**31 - 1
"""Parent of the first node."""


def check_model_file(path: Path, columns: int) -> None:
    """Check that a file is a whole model of XGBoost on so many columns, whose trees are trees.

    Raises: UserError when it is not.
    """
    state = read_state(path)
    try:
        learner = state["learner"]
        _check_learner(learner, columns)
        for number, tree in enumerate(learner["gradient_booster"]["model"]["trees"]):
            _expect(tree["id"] == number, f"tree {number}")
            _check_tree(tree, columns)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        fact, remedy = f"it is damaged ({str(error)[:100]})", "train it again, or fetch it again"
        raise UserError(f"{path} must be a model of XGBoost", fact, remedy) from None


def _check_learner(learner: Mapping[str, Any], columns: int) -> None:
    booster, shape = learner["gradient_booster"], learner["learner_model_param"]
    model, count = booster["model"], len(booster["model"]["trees"])
    _expect(booster["name"] == "gbtree" and learner["objective"]["name"] == "reg:squarederror", "its kind")
    _expect(learner["attributes"] == {} and learner["feature_names"] == learner["feature_types"] == [], "its columns")
    _expect(shape["num_feature"] == str(columns), "another number of columns")
    _expect(shape["num_class"] == "0" and shape["num_target"] == "1", "several outputs")
    _expect(abs(float(shape["base_score"].strip("[]"))) <= LARGEST, "its base")
    _expect(model["cats"] == {"enc": [], "feature_segments": [], "sorted_idx": []}, "categories")
    _expect(model["gbtree_model_param"] == {"num_parallel_tree": "1", "num_trees": str(count)}, "its number of trees")
    _expect(model["tree_info"] == [0] * count, "its outputs")
    _expect(model["iteration_indptr"] == [*range(count + 1)], "its iterations")


def _check_tree(tree: Mapping[str, Any], columns: int) -> None:
    arrays = {name: np.array(tree[name]) for name in _ARRAYS}
    count = len(tree["left_children"])
    expected = {"num_deleted": "0", "num_feature": str(columns), "num_nodes": str(count), "size_leaf_vector": "1"}
    _expect(tree["tree_param"] == expected, "the parameters of a tree")
    _expect(all(tree[name] == [] for name in tree if name.startswith("categories")), "categories")
    _expect(all(array.shape == (count,) and array.dtype.kind in "if" for array in arrays.values()), "its arrays")
    left, right, parents = (arrays[name] for name in ("left_children", "right_children", "parents"))
    indices, leaf = arrays["split_indices"], left < 0
    _expect(all(array.dtype.kind == "i" for array in (left, right, parents, indices)), "its nodes")
    _expect(bool(np.isin(arrays["default_left"], (0, 1)).all()) and not arrays["split_type"].any(), "a type of a split")
    _expect(bool(((indices >= 0) & (indices < columns)).all()), "a split by no column")
    _expect(bool((left[leaf] == -1).all()) and bool((right[leaf] == -1).all()), "a leaf with children")
    # every node but the first is the child of the node that it names, and comes after it
    inner, nodes = np.flatnonzero(~leaf), np.concatenate([left[~leaf], right[~leaf]])
    _expect(bool((np.sort(nodes) == np.arange(1, count)).all()), "its nodes")
    _expect(bool((parents[nodes] == np.tile(inner, 2)).all()) and parents[0] == _ROOT, "a parent")
    _expect(bool((nodes > np.tile(inner, 2)).all()), "the order of its nodes")


def _expect(holds: bool, fact: str) -> None:
    if not holds:
        raise ValueError(fact)
