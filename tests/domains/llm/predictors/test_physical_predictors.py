"""Composition of measured operators, and the roofline model with factors."""

import numpy as np
import pandas as pd
import pytest
from reloaded import reloaded

from perfcast.domains.llm.predictors.composition import CompositionPredictor
from perfcast.domains.llm.predictors.roofline_factors import RooflineFactorsPredictor
from perfcast.schema.table import Column, Kind, Role, Tag


def number(name, *tags, role=Role.FEATURE, unit="ms"):
    return Column(name, Kind.NUMERICAL, role, "problem", unit, tags=tags)


COLUMNS = (
    Column("gpu", Kind.CATEGORICAL, Role.KEY, "gpu", tags=(Tag.ENTITY,)),
    number("speed", unit=""),
    number("part_a", Tag.COMPONENT),
    number("part_b", Tag.COMPONENT),
    number("part_a_slowdown", Tag.SLOWDOWN, role=Role.KEY, unit=""),
    number("part_b_slowdown", Tag.SLOWDOWN, role=Role.KEY, unit=""),
    number("layers", Tag.COST, unit=""),
    number("t_total", Tag.COST),
    Column("latency", Kind.NUMERICAL, Role.TARGET, "problem", "ms"),
)
SLOWDOWN = {"old": 2.0, "mid": 3.0, "new": 4.0}


def runs(rows=240, seed=0):
    """Return runs of 1.1 x part a + 0.9 x part b + 0.01 x layers; the sum at the speed of light says little."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"gpu": random.choice(list(SLOWDOWN), rows)})
    light = np.exp(random.normal(0, 1, (rows, 2)))
    light[::5, 1] = 0
    slow = frame["gpu"].map(SLOWDOWN)
    frame = frame.assign(
        speed=slow / 2,
        part_a=light[:, 0],
        part_b=light[:, 1],
        part_a_slowdown=slow,
    )
    frame["part_b_slowdown"] = (10 / slow).where(light[:, 1] > 0)
    frame = frame.assign(layers=random.choice([16.0, 32.0, 64.0], rows), t_total=light.sum(axis=1))
    time = 1.1 * frame["part_a"] * slow + 0.9 * frame["part_b"] * 10 / slow + 0.01 * frame["layers"]
    return frame, time.to_frame("latency")


def predict(X, y, frames, predictor=CompositionPredictor):
    """Return the predictions of one fit for several frames."""
    fitted = reloaded(predictor().fit(X, y, columns=COLUMNS))
    return [fitted.predict(each)["latency"].to_numpy() for each in frames]


def test_parts_and_overheads_are_recovered_also_where_a_slowdown_is_missing():
    X, y = runs()
    expected = y["latency"].to_numpy()
    described = X.assign(part_a_slowdown=np.nan, part_b_slowdown=np.nan)
    known, missing = predict(X, y, [X, described])
    assert known == pytest.approx(expected, rel=0.05)
    assert missing == pytest.approx(expected, rel=0.1), "predicted from the features"
    (plain,) = predict(X, y, [X], RooflineFactorsPredictor)
    assert np.abs(plain / expected - 1).mean() > 0.1


def test_unknown_entities_and_rows_without_parts():
    X, y = runs()
    trained = (X["gpu"] != "new").to_numpy()
    right, wrong = predict(
        X[trained],
        y[trained],
        [X, X.assign(part_a_slowdown=99.0, part_b_slowdown=99.0)],
    )
    np.testing.assert_array_equal(right[~trained], wrong[~trained])
    assert not np.allclose(right[trained], wrong[trained])
    X, y = runs()
    unknown = X.assign(part_a=np.nan, part_b=np.nan)
    for tested, learned in ((unknown, X), (X, unknown)):
        (composed,) = predict(learned, y, [tested])
        (plain,) = predict(X, y, [tested], RooflineFactorsPredictor)
        assert composed == pytest.approx(plain)


FACTOR_COLUMNS = (
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
        }
    )
    X = X.assign(
        software=rng.choice(["fast", "slow"], rows),
        color=rng.choice(["red", "blue"], rows),
    )
    factor = X["software"].map({"fast": 0.8, "slow": 1.25})
    time = (2 + 0.5 * X["bytes"] + 3 * X["steps"]) * factor * np.exp(rng.normal(0, noise, rows))
    return X, time.to_frame("time")


def test_rates_and_factors_are_found_and_an_unknown_category_has_none():
    X, y = draw()
    fitted = RooflineFactorsPredictor().fit(X, y, columns=FACTOR_COLUMNS)
    assert np.ravel(reloaded(fitted).predict(X)) == pytest.approx(y["time"].to_numpy(), rel=0.01)
    factors = fitted.factors_["time"][""]
    assert set(factors) == {"software"}
    assert factors["software"]["slow"] - factors["software"]["fast"] == pytest.approx(np.log(1.25 / 0.8), abs=0.02)
    slow, new, missing = (np.ravel(fitted.predict(X.assign(software=name))) for name in ("slow", "new", None))
    assert new == pytest.approx(slow / np.exp(factors["software"]["slow"]))
    np.testing.assert_array_equal(missing, new)


def test_large_errors_have_little_influence_and_a_rate_is_work_over_time():
    X, y = draw(noise=0.02)
    disturbed = y.copy()
    disturbed.iloc[::20] *= 10
    fitted = RooflineFactorsPredictor().fit(X, disturbed, columns=FACTOR_COLUMNS)
    assert np.median(np.abs(np.ravel(fitted.predict(X)) / y["time"] - 1)) < 0.05
    X, y = draw()
    work = Column("work", Kind.NUMERICAL, Role.FEATURE, "load", tags=(Tag.WORK,))
    with_work = X.assign(work=1000.0)
    fitted = RooflineFactorsPredictor().fit(with_work, 1000 / y, columns=(*FACTOR_COLUMNS, work))
    assert np.ravel(fitted.predict(with_work)) == pytest.approx(1000 / y["time"].to_numpy(), rel=0.01)
