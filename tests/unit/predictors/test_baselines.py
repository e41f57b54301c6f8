"""Baselines on cases whose result is known by hand, and on products of powers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.predictors.baselines import NearestPredictor, PowerLawPredictor
from perfcast.schema.table import Column, Kind, Role, Tag

MACHINE_COLUMNS = (
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


def predict(*rows: tuple[object, ...]) -> list[float]:
    predictor = NearestPredictor().fit(TRAIN, TRAIN[["score"]], columns=MACHINE_COLUMNS)
    X = pd.DataFrame(rows, columns=["suite", "part", "chips", "cores"])
    return [round(value, 9) for value in predictor.predict(X)["score"]]


def test_the_same_machine_gets_the_median_of_its_task() -> None:
    assert predict(("rate", "a", 1.0, 8.0), ("speed", "a", 1.0, 8.0)) == [12.0, 3.0]


def test_the_chip_count_is_part_of_the_machine() -> None:
    assert predict(("rate", "a", 2.0, 16.0)) == [20.0]


def test_an_unknown_machine_gets_the_nearest_one_of_its_task() -> None:
    assert predict(("rate", "new", 1.0, 60.0), ("rate", "new", 1.0, 9.0), ("speed", "new", 1.0, 64.0)) == [80, 12, 3]


def test_an_unknown_task_gets_the_nearest_machine_of_any() -> None:
    assert predict(("other", "new", 1.0, 64.0)) == [80.0]


def test_a_missing_identity_is_not_a_machine() -> None:
    assert predict(("rate", None, 1.0, 64.0)) == [80.0]


def test_a_machine_not_measured_on_one_target_uses_its_neighbor() -> None:
    y = TRAIN[["score"]].assign(other=[np.nan, np.nan, np.nan, np.nan, 7.0, 9.0])
    predictor = NearestPredictor().fit(TRAIN, y, columns=MACHINE_COLUMNS)
    answer = predictor.predict(TRAIN.iloc[:1])
    assert round(answer["score"].iloc[0], 9) == 12.0
    assert round(answer["other"].iloc[0], 9) == 7.0


def test_without_identity_columns_equal_features_are_the_same_machine() -> None:
    X = TRAIN[["cores"]]
    answer = NearestPredictor().fit(X, TRAIN["score"]).predict(X.iloc[[4]])
    assert round(answer[0], 9) == 80.0


SCALING_COLUMNS = (
    Column("suite", Kind.CATEGORICAL, Role.KEY, "workload", tags=(Tag.TASK,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.SCALING,)),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.SCALING,)),
    Column("noise", Kind.NUMERICAL, Role.FEATURE, "system"),
)


def machines(exponent: float, rows: int = 60) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "suite": np.where(np.arange(rows) % 2 == 0, "rate", "speed"),
            "cores": rng.choice([4.0, 8.0, 32.0, 64.0], rows),
            "mhz": rng.uniform(2000, 4000, rows),
            "noise": rng.normal(size=rows),
        }
    )
    cores_exponent = np.where(X["suite"] == "rate", exponent, 0.2)
    return X, pd.DataFrame({"score": 5.0 * X["cores"] ** cores_exponent * (X["mhz"] / 1000) ** 0.7})


def fit(X: pd.DataFrame, y: pd.DataFrame) -> PowerLawPredictor:
    return PowerLawPredictor(shrinkage=1e-9).fit(X, y, columns=SCALING_COLUMNS)


def powers(predictor: PowerLawPredictor, task: str) -> dict[str, float]:
    by_task = predictor.powers_["score"]
    return next(value for name, value in by_task.items() if name.startswith(task))


def test_recovers_the_exponents_of_every_task() -> None:
    predictor = fit(*machines(0.9))
    assert powers(predictor, "rate")["cores"] == pytest.approx(0.9, abs=1e-4)
    assert powers(predictor, "speed")["cores"] == pytest.approx(0.2, abs=1e-4)
    assert powers(predictor, "rate")["mhz"] == pytest.approx(0.7, abs=1e-4)


@pytest.mark.parametrize(("true", "bounded"), [(1.8, 1.0), (-0.5, 0.0)])
def test_exponents_stay_between_none_and_perfect_scaling(true: float, bounded: float) -> None:
    assert powers(fit(*machines(true)), "rate")["cores"] == pytest.approx(bounded, abs=1e-6)


def test_extrapolates_as_a_power() -> None:
    predictor = fit(*machines(0.9))
    X = pd.DataFrame({"suite": "rate", "cores": [64.0, 640.0], "mhz": 3000.0, "noise": 0.0})
    small, large = predictor.predict(X)["score"]
    assert large / small == pytest.approx(10**0.9, rel=1e-3)


def test_a_missing_or_impossible_quantity_is_the_training_median() -> None:
    X, y = machines(0.9)
    predictor = fit(X, y)
    rows = pd.DataFrame({"suite": "rate", "cores": 8.0, "mhz": [np.nan, 0.0, -1.0, X["mhz"].median()], "noise": 0.0})
    assert predictor.predict(rows)["score"].nunique() == 1


def test_without_scaling_columns_it_is_the_mean_log_score_of_the_task() -> None:
    X, y = machines(0.9)
    predictor = PowerLawPredictor().fit(X, y, columns=[SCALING_COLUMNS[0], SCALING_COLUMNS[3]])
    expected = np.exp(np.log(y["score"]).groupby(X["suite"]).mean())
    assert predictor.predict(X)["score"].iloc[0] == pytest.approx(expected["rate"])
    assert predictor.predict(X)["score"].iloc[1] == pytest.approx(expected["speed"])
