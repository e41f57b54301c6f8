"""Which rows a model learns from, and which model answers for which task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.errors import UserError
from perfcast.predictors._rows import by_task_group, choice_split, joined_labels, measured_rows, task_groups
from perfcast.predictors.lightgbm import LightgbmPredictor
from perfcast.predictors.random_forest import RandomForestPredictor
from perfcast.schema import Column, Kind, Role, Tag

TASKS = np.array(["a"] * 5 + ["b"] * 5 + ["c"] * 2, dtype=object)
ALL = np.ones(len(TASKS), dtype=bool)


def test_large_tasks_have_models_of_their_own_and_small_ones_share() -> None:
    groups = task_groups(TASKS, ALL, 5)
    assert {name: int(rows.sum()) for name, rows in groups.items()} == {"task a": 5, "task b": 5, "shared": 12}


def test_no_model_is_shared_where_every_task_is_large() -> None:
    assert list(task_groups(TASKS, ALL, 2)) == ["task a", "task b", "task c"]


def test_only_measured_rows_count() -> None:
    assert list(task_groups(TASKS, TASKS != "b", 5)) == ["task a", "shared"]


def test_a_row_is_answered_by_its_task_then_the_shared_model_then_all() -> None:
    values = {"task a": 1.0, "task b": 3.0, "shared": 9.0}

    def answers(models: list[str]) -> list[float]:
        asked = np.array(["a", "b", "new"], dtype=object)
        return list(by_task_group(asked, models, lambda model, rows: np.full(len(rows), values[models[model]])))

    assert answers(["task a", "task b", "shared"]) == [1.0, 3.0, 9.0]
    assert answers(["task a", "task b"]) == [1.0, 3.0, 2.0]
    assert answers(["task a", "shared"]) == [1.0, 9.0, 9.0]


def test_unmeasured_rows_are_left_out_and_unmeasured_targets_refused() -> None:
    logs = np.array([[1.0, np.nan], [np.nan, np.nan]])
    assert [list(mask) for mask in measured_rows(logs[:, :1], ["first"])] == [[True, False]]
    with pytest.raises(UserError, match="second"):
        measured_rows(logs, ["first", "second"])


def test_no_choice_is_made_where_either_part_is_empty() -> None:
    rows, valid = np.array([True, True, False]), np.array([False, True, True])
    parts = choice_split(rows, valid)
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
    "predictor", [LightgbmPredictor(rounds=100, feature_fraction=1.0), RandomForestPredictor(trees=10)]
)
@pytest.mark.parametrize("task_rows", [20, 1000])
def test_tasks_that_behave_opposite_are_learned_alone_and_together(
    predictor: LightgbmPredictor | RandomForestPredictor, task_rows: int
) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "suite": np.where(np.arange(200) % 2 == 0, "up", "down")})
    y = pd.DataFrame({"score": np.exp(np.where(X["suite"] == "up", X["x"], -X["x"]))})
    columns = [
        Column("suite", Kind.CATEGORICAL, Role.KEY, "all", tags=(Tag.TASK,)),
        Column("x", Kind.NUMERICAL, Role.FEATURE, "all"),
    ]
    predictor.set_params(task_rows=task_rows).fit(X, y, columns=columns)
    assert np.abs(np.log(predictor.predict(X) / y)).to_numpy().mean() < 0.1
    assert np.isfinite(predictor.predict(X.assign(suite="new"))).all(axis=None)
