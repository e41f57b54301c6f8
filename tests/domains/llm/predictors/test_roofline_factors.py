"""The roofline model with factors: rates and factors found again, unknown categories, rates of work."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.llm.predictors.roofline_factors import RooflineFactorsPredictor
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("bytes", Kind.NUMERICAL, Role.FEATURE, "load", tags=(Tag.COST,)),
    Column("steps", Kind.NUMERICAL, Role.FEATURE, "load", tags=(Tag.COST,)),
    Column("software", Kind.CATEGORICAL, Role.FEATURE, "layout", tags=(Tag.SLICE,)),
    Column("color", Kind.CATEGORICAL, Role.FEATURE, "layout"),
)


def draw(rows=400, noise=0.0):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "bytes": np.exp(rng.normal(3, 1, rows)),
            "steps": np.exp(rng.normal(1, 1, rows)),
            "software": rng.choice(["fast", "slow"], rows),
            "color": rng.choice(["red", "blue"], rows),
        }
    )
    factor = X["software"].map({"fast": 0.8, "slow": 1.25})
    time = (2 + 0.5 * X["bytes"] + 3 * X["steps"]) * factor * np.exp(rng.normal(0, noise, rows))
    return X, time.to_frame("time")


def test_rates_and_factors_are_found():
    X, y = draw()
    fitted = RooflineFactorsPredictor().fit(X, y, columns=COLUMNS)
    assert np.ravel(fitted.predict(X)) == pytest.approx(y["time"].to_numpy(), rel=0.01)
    factors = fitted.factors_["time"][""]
    assert set(factors) == {"software"}
    assert factors["software"]["slow"] - factors["software"]["fast"] == pytest.approx(np.log(1.25 / 0.8), abs=0.02)


def test_few_large_errors_have_little_influence():
    X, y = draw(noise=0.02)
    disturbed = y.copy()
    disturbed.iloc[::20] *= 10
    fitted = RooflineFactorsPredictor().fit(X, disturbed, columns=COLUMNS)
    assert np.median(np.abs(np.ravel(fitted.predict(X)) / y["time"] - 1)) < 0.05


def test_an_unknown_category_has_no_factor():
    X, y = draw()
    fitted = RooflineFactorsPredictor().fit(X, y, columns=COLUMNS)
    known = np.ravel(fitted.predict(X.assign(software="slow")))
    for unknown in ("new", None):
        other = np.ravel(fitted.predict(X.assign(software=unknown)))
        assert other == pytest.approx(known / np.exp(fitted.factors_["time"][""]["software"]["slow"]))


def test_predictions_survive_saving(tmp_path):
    X, y = draw()
    fitted = RooflineFactorsPredictor().fit(X, y, columns=COLUMNS)
    fitted.save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model")
    assert np.array_equal(np.ravel(loaded.predict(X)), np.ravel(fitted.predict(X)))


def test_a_rate_is_work_over_time():
    X, y = draw()
    work = Column("work", Kind.NUMERICAL, Role.FEATURE, "load", tags=(Tag.WORK,))
    with_work = X.assign(work=1000.0)
    fitted = RooflineFactorsPredictor().fit(with_work, 1000 / y, columns=(*COLUMNS, work))
    assert np.ravel(fitted.predict(with_work)) == pytest.approx(1000 / y["time"].to_numpy(), rel=0.01)
