"""Predictors of runs under way, on a gain that follows their law."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import perfcast
from perfcast.domains.scaling.predictors.training_curves import LastValuePredictor, RemainingGainPredictor
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag

NUMBERS = ("value_now", "value_level", "relative_slope", "log_params", "log_tokens_per_param")
COLUMNS = (
    Column("id", Kind.CATEGORICAL, Role.KEY, "evaluation", tags=(Tag.ROW,)),
    Column("task", Kind.CATEGORICAL, Role.KEY, "evaluation", tags=(Tag.TASK,)),
    *(Column(name, Kind.NUMERICAL, Role.FEATURE, "curve") for name in NUMBERS),
    Column("value", Kind.NUMERICAL, Role.TARGET, "evaluation"),
)


def runs(count: int = 60) -> pd.DataFrame:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({name: random.uniform(1, 3, count) for name in NUMBERS})
    frame["relative_slope"] = random.uniform(-0.1, 0.0, count)
    frame["task"] = np.where(np.arange(count) % 2 == 0, "loss", "accuracy")
    gain = np.where(frame["task"] == "loss", -0.05 + 0.8 * frame["relative_slope"], 0.2 - 0.01 * frame["log_params"])
    return frame.assign(id=np.arange(count).astype(str), value=frame["value_level"] * np.exp(gain))


def fitted(predictor, frame):
    return predictor.fit(frame, frame[["value"]], columns=COLUMNS)


def test_the_gain_of_each_task_is_learned(tmp_path: Path) -> None:
    frame = runs()
    learned = fitted(RemainingGainPredictor(), frame.head(40))
    predicted = learned.predict(frame.tail(20))["value"]
    assert (np.abs(predicted / frame["value"].tail(20) - 1) < 0.003).all()
    learned.save(tmp_path / "model")
    pd.testing.assert_series_equal(load_predictor(tmp_path / "model").predict(frame.tail(20))["value"], predicted)


def test_a_task_with_few_runs_has_the_mean_gain() -> None:
    frame = runs(8)
    losses = frame[frame["task"] == "loss"]
    gain = np.log(losses["value"] / losses["value_level"]).mean()
    predicted = fitted(RemainingGainPredictor(), losses).predict(losses)["value"]
    np.testing.assert_allclose(predicted, losses["value_level"] * np.exp(gain))


def test_a_row_without_a_curve_has_the_median_of_its_task() -> None:
    frame = runs()
    blank = frame.head(2).assign(value_now=np.nan, value_level=np.nan)
    medians = np.exp(np.log(frame["value"]).groupby(frame["task"]).median())
    for predictor in (LastValuePredictor(), RemainingGainPredictor()):
        predicted = fitted(predictor, frame).predict(blank)["value"]
        np.testing.assert_allclose(predicted, medians[blank["task"]])


def test_the_last_value_is_the_last_value() -> None:
    frame = runs()
    np.testing.assert_allclose(fitted(LastValuePredictor(), frame).predict(frame)["value"], frame["value_now"])


def test_the_ensemble_is_the_mean_of_the_logarithms(tmp_path: Path) -> None:
    frame = runs()
    ensemble = fitted(perfcast.estimator("curve_ensemble"), frame)
    parts = [np.log(member.predict(frame)["value"]) for member in ensemble.members_.values()]
    assert len(parts) == 2
    np.testing.assert_allclose(np.log(ensemble.predict(frame)["value"]), np.mean(parts, axis=0))
    ensemble.save(tmp_path / "model")
    again = load_predictor(tmp_path / "model").predict(frame)
    pd.testing.assert_frame_equal(again, ensemble.predict(frame))
