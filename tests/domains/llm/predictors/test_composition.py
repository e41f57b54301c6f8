"""Composition of measured operators: slowdowns of known entities alone, overheads, rows without parts."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.llm.predictors.composition import CompositionPredictor
from perfcast.domains.llm.predictors.roofline_factors import RooflineFactorsPredictor
from perfcast.predictors.predictor import load_predictor
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
    gpu = random.choice(list(SLOWDOWN), rows)
    light = np.exp(random.normal(0, 1, (rows, 2)))
    light[::5, 1] = 0
    slow = np.array([SLOWDOWN[name] for name in gpu])
    frame = pd.DataFrame(
        {
            "gpu": gpu,
            "speed": slow / 2,
            "part_a": light[:, 0],
            "part_b": light[:, 1],
            "part_a_slowdown": slow,
            "part_b_slowdown": np.where(light[:, 1] > 0, 10 / slow, np.nan),
            "layers": random.choice([16.0, 32.0, 64.0], rows),
            "t_total": light.sum(axis=1),
        }
    )
    time = 1.1 * frame["part_a"] * slow + 0.9 * frame["part_b"] * 10 / slow + 0.01 * frame["layers"]
    return frame, time.to_frame("latency")


def fit(X, y, predictor=None):
    return (predictor or CompositionPredictor()).fit(X, y, columns=COLUMNS)


def test_parts_and_overheads_are_recovered():
    X, y = runs()
    known = X["gpu"] != "none"
    fitted = fit(X[known], y[known])
    assert fitted.predict(X)["latency"].to_numpy() == pytest.approx(y["latency"].to_numpy(), rel=0.05)
    plain = fit(X, y, RooflineFactorsPredictor()).predict(X)
    assert np.abs(plain / y - 1).to_numpy().mean() > 0.1


def test_a_slowdown_is_read_for_entities_of_the_training_rows_alone():
    X, y = runs()
    trained = X["gpu"] != "new"
    fitted = fit(X[trained], y[trained])
    wrong = X.assign(part_a_slowdown=99.0, part_b_slowdown=99.0)
    unseen = ~trained
    pd.testing.assert_frame_equal(fitted.predict(X[unseen]), fitted.predict(wrong[unseen]))
    assert not np.allclose(fitted.predict(X[trained]), fitted.predict(wrong[trained]))


def test_a_slowdown_that_is_missing_is_predicted_from_the_features():
    X, y = runs()
    fitted = fit(X, y)
    described = X.assign(part_a_slowdown=np.nan, part_b_slowdown=np.nan)
    assert fitted.predict(described)["latency"].to_numpy() == pytest.approx(y["latency"].to_numpy(), rel=0.1)


def test_rows_without_parts_get_the_roofline_model_with_factors():
    X, y = runs()
    fitted, plain = fit(X, y), fit(X, y, RooflineFactorsPredictor())
    unknown = X.assign(part_a=np.nan, part_b=np.nan)
    assert fitted.predict(unknown)["latency"].to_numpy() == pytest.approx(plain.predict(unknown)["latency"].to_numpy())
    never = fit(unknown, y)
    assert never.predict(X)["latency"].to_numpy() == pytest.approx(plain.predict(X)["latency"].to_numpy())


def test_a_saved_composition_predicts_the_same(tmp_path):
    X, y = runs()
    fitted = fit(X[X["gpu"] != "new"], y[X["gpu"] != "new"])
    fitted.save(tmp_path / "model")
    pd.testing.assert_frame_equal(load_predictor(tmp_path / "model").predict(X), fitted.predict(X))
