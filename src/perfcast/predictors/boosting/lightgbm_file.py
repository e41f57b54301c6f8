"""Check of LightGBM's model files from outside: the library itself ends the process at most that differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from perfcast.utils.errors import UserError
from perfcast.utils.model_files import LARGEST

_HEADER = {"version": "v4", "num_class": "1", "num_tree_per_iteration": "1"}
_TREE = {"num_cat": "0", "is_linear": "0"}
_END = "end of trees\n"
_LAST = "\nend of parameters\n\npandas_categorical:null\n"
_INNER = ("split_feature", "decision_type", "left_child", "right_child")
_INNER_NUMBERS = ("split_gain", "internal_value", "internal_weight", "internal_count")
_LEAF_NUMBERS = ("leaf_weight", "leaf_count")
_NUMERIC_SPLITS = (0, 2, 4, 6, 8, 10)
"""Types of splits by a number: its default side, and how missing values are marked."""


def check_model_file(path: Path, columns: int) -> None:
    """Check that a file is a whole model of LightGBM on so many columns, whose trees are trees.

    Raises: UserError when it is not.
    """
    try:
        _check_text(path.read_text(encoding="ascii"), columns)
    except (ValueError, KeyError, IndexError) as error:
        fact = f"it is damaged ({str(error)[:100]})"
        remedy = "train it again, or fetch it again"
        raise UserError(f"{path} must be a model of LightGBM", fact, remedy) from None


def _check_text(text: str, columns: int) -> None:
    head, _, body = text.partition("\n\n")
    lines = head.splitlines()
    header = _read_lines(lines[1:])
    _expect(lines[0] == "tree" and "\r" not in text and "\0" not in text, "its beginning")
    _expect_values(header, _HEADER)
    _expect(int(header["max_feature_idx"]) == columns - 1, "another number of columns")
    _expect(
        len(header["feature_names"].split(" ")) == len(header["feature_infos"].split(" ")) == columns, "its columns"
    )
    sizes = [int(size) for size in header["tree_sizes"].split(" ")]
    start = 0
    for number, size in enumerate(sizes):
        _expect(size > 0, "a size of a tree")
        first, _, tree = body[start : start + size].partition("\n")
        _expect(first == f"Tree={number}", f"tree {number}")
        _check_tree(_read_lines(tree.splitlines()), columns)
        start += size
    _expect(body.startswith(_END, start) and text.endswith(_LAST), "its end")


def _check_tree(tree: Mapping[str, str], columns: int) -> None:
    _expect_values(tree, _TREE)
    count = int(tree["num_leaves"])
    _expect(count >= 1, "no leaf")
    _expect_numbers(tree["leaf_value"], count)
    _expect_numbers(tree["shrinkage"], 1)
    for name in _LEAF_NUMBERS:
        _expect_numbers(tree.get(name, ""), count, optional=count == 1)
    if count == 1:
        return
    for name in _INNER_NUMBERS:
        _expect_numbers(tree[name], count - 1)
    _expect_numbers(tree["threshold"], count - 1, largest=np.inf)  # infinite ones split off what is missing
    features, types, left, right = (_expect_numbers(tree[name], count - 1) for name in _INNER)
    _expect(bool(np.isin(features, np.arange(columns)).all()), "a split by no column")
    _expect(bool(np.isin(types, _NUMERIC_SPLITS).all()), "a type of a split")
    # every node but the first, and every leaf, is the child of one node; nodes come after their parents
    children = np.concatenate([left, right])
    _expect(bool((np.sort(children) == [*range(-count, 0), *range(1, count - 1)]).all()), "its nodes")
    parents = np.tile(np.arange(count - 1), 2)
    _expect(bool(((children < 0) | (children > parents)).all()), "the order of its nodes")


def _read_lines(lines: list[str]) -> dict[str, str]:
    """Return the values of `name=value` lines. Raises: ValueError for another line or a second value."""
    entries: dict[str, str] = {}
    for line in filter(None, lines):
        name, sign, value = line.partition("=")
        _expect(bool(sign) and name not in entries, f"the line {line[:30]!r}")
        entries[name] = value
    return entries


def _expect_numbers(text: str, count: int, *, optional: bool = False, largest: float = LARGEST) -> np.ndarray:
    numbers = np.array(text.split(" ") if text else [], dtype=float)
    _expect(len(numbers) == count or (optional and len(numbers) == 0), "the number of its values")
    _expect(bool((np.abs(numbers) <= largest).all()), "an impossible number")
    return numbers


def _expect_values(entries: Mapping[str, str], expected: Mapping[str, str]) -> None:
    for name, value in expected.items():
        _expect(entries[name] == value, f"{name} is {entries[name][:20]!r}")


def _expect(holds: bool, fact: str) -> None:
    if not holds:
        raise ValueError(fact)
