"""The scaling law recovers laws it was generated from and keeps its bounds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.predictors.baselines import PowerLawPredictor
from perfcast.schema import Column, Kind, Role, Tag

COLUMNS = (
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
    return PowerLawPredictor(shrinkage=1e-9).fit(X, y, columns=COLUMNS)


def law(predictor: PowerLawPredictor, task: str) -> dict[str, float]:
    laws = predictor.powers_["score"]
    return next(value for name, value in laws.items() if name.startswith(task))


def test_recovers_the_exponents_of_every_task() -> None:
    predictor = fit(*machines(0.9))
    assert law(predictor, "rate")["cores"] == pytest.approx(0.9, abs=1e-4)
    assert law(predictor, "speed")["cores"] == pytest.approx(0.2, abs=1e-4)
    assert law(predictor, "rate")["mhz"] == pytest.approx(0.7, abs=1e-4)


@pytest.mark.parametrize(("true", "bounded"), [(1.8, 1.0), (-0.5, 0.0)])
def test_exponents_stay_between_none_and_perfect_scaling(true: float, bounded: float) -> None:
    assert law(fit(*machines(true)), "rate")["cores"] == pytest.approx(bounded, abs=1e-6)


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
    predictor = PowerLawPredictor().fit(X, y, columns=[COLUMNS[0], COLUMNS[3]])
    expected = np.exp(np.log(y["score"]).groupby(X["suite"]).mean())
    assert predictor.predict(X)["score"].iloc[0] == pytest.approx(expected["rate"])
    assert predictor.predict(X)["score"].iloc[1] == pytest.approx(expected["speed"])
