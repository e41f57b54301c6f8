"""Which rows a model learns from, and which model answers for which task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.task_rows import (
    POOLED,
    choice_split,
    fitted_by_group,
    groups_of,
    joined_labels,
    measured_rows,
    partly_measured,
    select_models,
    task_groups,
)
from perfcast.predictors.trees import RandomForest
from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.utils.errors import UserError

TASKS = np.array(["a"] * 5 + ["b"] * 5 + ["c"] * 2, dtype=object)
ALL = np.ones(len(TASKS), dtype=bool)


def test_large_tasks_have_models_of_their_own_and_small_ones_share() -> None:
    groups = task_groups(TASKS, ALL, 5)
    assert {name: int(rows.sum()) for name, rows in groups.items()} == {"task a": 5, "task b": 5, "shared": 12}


def test_no_model_is_shared_where_every_task_is_large() -> None:
    assert list(task_groups(TASKS, ALL, 2)) == ["task a", "task b", "task c"]


def test_only_measured_rows_count() -> None:
    assert list(task_groups(TASKS, TASKS != "b", 5)) == ["task a", "shared"]


def test_a_task_is_answered_by_its_own_model_then_the_shared_one_then_all() -> None:
    models = ["task a", "task b", "shared"]
    assert [select_models(task, models) for task in ("a", "b", "new")] == [[0], [1], [2]]
    assert [select_models(task, models[:2]) for task in ("a", "new")] == [[0], [0, 1]]
    assert select_models("b", ["task a", "shared"]) == [1]


def test_tasks_that_have_some_targets_are_told_with_them_and_those_that_have_all_or_none_are_not() -> None:
    logs = np.zeros((12, 2))
    logs[:5, 1], logs[10:] = np.nan, np.nan
    assert partly_measured(TASKS, logs, ["first", "second"]) == {"a": ["first"]}
    assert partly_measured(TASKS, logs[:, :1], ["first"]) == {}
    assert partly_measured(np.where(TASKS == "a", "", TASKS), logs, ["first", "second"]) == {}


def test_where_all_rows_are_of_one_task_its_model_is_that_of_all_and_is_fitted_once() -> None:
    seen: list[int] = []

    def fit(rows: np.ndarray) -> int:
        seen.append(int(rows.sum()))
        return len(seen)

    assert fitted_by_group(groups_of(TASKS, TASKS == "a"), fit) == {"a": 1, POOLED: 1}
    assert fitted_by_group(groups_of(TASKS, TASKS != "a"), fit) == {"b": 2, "c": 3, POOLED: 4}
    assert fitted_by_group(groups_of(TASKS, TASKS != "a", pooled=False), fit) == {"b": 5, "c": 6}
    assert seen == [5, 5, 2, 7, 5, 2]


def test_unmeasured_rows_are_left_out_and_unmeasured_targets_refused() -> None:
    logs = np.array([[1.0, np.nan], [np.nan, np.nan]])
    assert [list(mask) for mask in measured_rows(logs[:, :1], ["first"])] == [[True, False]]
    with pytest.raises(UserError, match="second"):
        measured_rows(logs, ["first", "second"])


def test_no_choice_is_made_where_either_part_is_empty() -> None:
    rows, validation = np.array([True, True, False]), np.array([False, True, True])
    parts = choice_split(rows, validation)
    assert parts is not None
    assert [list(part) for part in parts] == [[True, False, False], [False, True, False]]
    assert choice_split(rows, np.zeros(3, dtype=bool)) is None
    assert choice_split(rows, np.ones(3, dtype=bool)) is None


def test_labels_are_joined_without_collisions_and_unknown_is_not_equal() -> None:
    columns = [Column(name, Kind.CATEGORICAL, Role.KEY, "all") for name in ("x", "y")]
    frame = pd.DataFrame({"x": ["ab", "a", None], "y": ["c", "bc", "c"]})
    first, second, third = joined_labels(frame, columns)
    assert first != second
    assert third is None


@pytest.mark.parametrize(
    "predictor", [LightgbmPredictor(n_estimators=300, colsample_bytree=1.0), RandomForest(n_estimators=10)]
)
@pytest.mark.parametrize("min_samples", [20, 1000])
def test_tasks_that_behave_opposite_are_learned_alone_and_together(
    predictor: LightgbmPredictor | RandomForest, min_samples: int
) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "suite": np.where(np.arange(200) % 2 == 0, "up", "down")})
    y = pd.DataFrame({"score": np.exp(np.where(X["suite"] == "up", X["x"], -X["x"]))})
    columns = [
        Column("suite", Kind.CATEGORICAL, Role.KEY, "all", tags=(Tag.TASK,)),
        Column("x", Kind.NUMERICAL, Role.FEATURE, "all"),
    ]
    predictor.set_params(min_samples_per_task=min_samples).fit(X, y, columns=columns)
    assert np.abs(np.log(predictor.predict(X) / y)).to_numpy().mean() < 0.1
    assert np.isfinite(predictor.predict(X.assign(suite="new"))).all(axis=None)
