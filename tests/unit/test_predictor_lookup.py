"""The lookup baseline on cases whose answer is known by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.predictors.baselines import NearestPredictor
from perfcast.schema import Column, Kind, Role, Tag

COLUMNS = (
    Column("suite", Kind.CATEGORICAL, Role.KEY, "workload", tags=(Tag.TASK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.IDENTITY,)),
    Column("chips", Kind.NUMERICAL, Role.FEATURE, "system", tags=(Tag.IDENTITY,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
)
TRAIN = pd.DataFrame(
    [
        ("rate", "a", 1.0, 8.0, 10.0),
        ("rate", "a", 1.0, 8.0, 12.0),
        ("rate", "a", 1.0, 8.0, 99.0),
        ("rate", "a", 2.0, 16.0, 20.0),
        ("rate", "b", 1.0, 64.0, 80.0),
        ("speed", "a", 1.0, 8.0, 3.0),
    ],
    columns=["suite", "part", "chips", "cores", "score"],
)


def forecast(*rows: tuple[object, ...]) -> list[float]:
    predictor = NearestPredictor().fit(TRAIN, TRAIN[["score"]], columns=COLUMNS)
    X = pd.DataFrame(rows, columns=["suite", "part", "chips", "cores"])
    return [round(value, 9) for value in predictor.predict(X)["score"]]


def test_the_same_machine_gets_the_median_of_its_task() -> None:
    assert forecast(("rate", "a", 1.0, 8.0), ("speed", "a", 1.0, 8.0)) == [12.0, 3.0]


def test_the_chip_count_is_part_of_the_machine() -> None:
    assert forecast(("rate", "a", 2.0, 16.0)) == [20.0]


def test_an_unknown_machine_gets_the_nearest_one_of_its_task() -> None:
    assert forecast(("rate", "new", 1.0, 60.0), ("rate", "new", 1.0, 9.0), ("speed", "new", 1.0, 64.0)) == [80, 12, 3]


def test_an_unknown_task_gets_the_nearest_machine_of_any() -> None:
    assert forecast(("other", "new", 1.0, 64.0)) == [80.0]


def test_a_missing_identity_is_not_a_machine() -> None:
    assert forecast(("rate", None, 1.0, 64.0)) == [80.0]


def test_a_machine_not_measured_on_one_target_uses_its_neighbour() -> None:
    y = TRAIN[["score"]].assign(other=[np.nan, np.nan, np.nan, np.nan, 7.0, 9.0])
    predictor = NearestPredictor().fit(TRAIN, y, columns=COLUMNS)
    answer = predictor.predict(TRAIN.iloc[:1])
    assert round(answer["score"].iloc[0], 9) == 12.0
    assert round(answer["other"].iloc[0], 9) == 7.0


def test_without_identity_columns_equal_features_are_the_same_machine() -> None:
    X = TRAIN[["cores"]]
    answer = NearestPredictor().fit(X, TRAIN["score"]).predict(X.iloc[[4]])
    assert round(answer["score"].iloc[0], 9) == 80.0
