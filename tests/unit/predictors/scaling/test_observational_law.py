"""The observational law finds the ability behind benchmarks, and leaves models without scores to compute."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.predictors.predictor import load_predictor
from perfcast.predictors.scaling.compute_sigmoid import ComputeSigmoidPredictor
from perfcast.predictors.scaling.observational_law import ObservationalLawPredictor
from perfcast.schema.table import Column, Kind, Role, Tag

BENCHMARKS = ("reading", "arithmetic", "coding")
COLUMNS = (
    Column("task", Kind.CATEGORICAL, Role.KEY, "evaluation", tags=(Tag.TASK,)),
    Column("task_kind", Kind.CATEGORICAL, Role.KEY, "evaluation"),
    Column("chance", Kind.NUMERICAL, Role.FEATURE, "evaluation"),
    Column("params", Kind.NUMERICAL, Role.FEATURE, "model", tags=(Tag.SCALING,)),
    Column("tokens", Kind.NUMERICAL, Role.FEATURE, "training", tags=(Tag.SCALING,)),
    *(Column(name, Kind.NUMERICAL, Role.FEATURE, "benchmark") for name in BENCHMARKS),
)


def models(count: int, seed: int, chance: float = 0.25) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return models whose ability depends on a skill that compute tells badly and benchmarks tell well."""
    rng = np.random.default_rng(seed)
    params, skill = np.exp(rng.uniform(20, 25, count)), rng.normal(0, 1.5, count)
    skill += 0.3 * (np.log(params) - 22.5)
    frame = pd.DataFrame({"task": "unscrambling", "task_kind": "accuracy", "chance": chance, "params": params})
    frame["tokens"] = 20 * params
    for place, name in enumerate(BENCHMARKS):
        frame[name] = 0.5 + 0.08 * skill * (1 + 0.2 * place) + rng.normal(0, 0.005, count)
    share = chance + (1 - chance) / (1 + np.exp(-1.2 * skill))
    return frame, pd.DataFrame({"value": share})


def points(predictor, frame, y) -> float:
    return float(np.abs(predictor.predict(frame)["value"] - y["value"]).mean() * 100)


@pytest.fixture(scope="module")
def fitted() -> ObservationalLawPredictor:
    frame, y = models(60, 0)
    return ObservationalLawPredictor().fit(frame, y, columns=COLUMNS)


def test_benchmarks_tell_an_ability_that_compute_does_not(fitted):
    frame, y = models(40, 1)
    by_compute = ComputeSigmoidPredictor().fit(*models(60, 0), columns=COLUMNS)
    assert points(fitted, frame, y) < 2.5
    assert points(by_compute, frame, y) > 10


def test_a_missing_score_is_told_by_the_others(fitted):
    frame, y = models(40, 2)
    frame.loc[::2, "coding"] = np.nan
    frame.loc[1::4, "reading"] = np.nan
    assert points(fitted, frame, y) < 3.5
    holes, shares = models(60, 0)
    holes.loc[::3, "arithmetic"] = np.nan
    assert points(ObservationalLawPredictor().fit(holes, shares, columns=COLUMNS), *models(40, 1)) < 2.5


def test_a_model_without_scores_is_left_to_compute(fitted):
    frame, _ = models(10, 3)
    frame[list(BENCHMARKS)] = np.nan
    by_compute = ComputeSigmoidPredictor().fit(*models(60, 0), columns=COLUMNS)
    pd.testing.assert_frame_equal(fitted.predict(frame), by_compute.predict(frame))


def test_no_share_is_below_chance_or_above_one(fitted):
    frame, _ = models(20, 4)
    frame = frame.assign(**dict.fromkeys(BENCHMARKS, np.linspace(-3, 4, 20)))
    shares = fitted.predict(frame)["value"]
    assert shares.between(0.25 - 1e-9, 1).all()
    assert shares.is_monotonic_increasing


def test_other_results_are_powers():
    frame, _ = models(60, 5)
    losses = pd.DataFrame({"value": np.exp(1 - 2 * (frame["reading"] - 0.5))})
    fitted = ObservationalLawPredictor().fit(frame.assign(task_kind="loss"), losses, columns=COLUMNS)
    np.testing.assert_allclose(fitted.predict(frame.assign(task_kind="loss"))["value"], losses["value"], rtol=0.03)


def test_a_law_survives_its_folder(fitted, tmp_path):
    frame, _ = models(10, 6)
    fitted.save(tmp_path / "law")
    pd.testing.assert_frame_equal(load_predictor(tmp_path / "law").predict(frame), fitted.predict(frame))
