"""Scaling laws as predictors, on a generated ladder: extrapolation, the law of a row, weights of the ensemble."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.scaling.predictors.scaling_ensemble import ScalingEnsemblePredictor
from perfcast.domains.scaling.predictors.scaling_laws import (
    ChinchillaLawPredictor,
    ComputeSigmoidPredictor,
    OvertrainingLawPredictor,
    TwoStepLawPredictor,
)
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("task", Kind.CATEGORICAL, Role.KEY, "task", tags=(Tag.TASK,)),
    Column("task_kind", Kind.CATEGORICAL, Role.KEY, "task"),
    Column("loss_task", Kind.CATEGORICAL, Role.KEY, "task"),
    Column("run", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.BLOCK,)),
    Column("training_set", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.IDENTITY,)),
    Column("chance", Kind.NUMERICAL, Role.FEATURE, "task"),
    Column("params", Kind.NUMERICAL, Role.FEATURE, "run", tags=(Tag.SCALING,)),
    Column("tokens", Kind.NUMERICAL, Role.FEATURE, "run", tags=(Tag.SCALING,)),
)


def ladder(sizes, factor=(1.0, 1.2)):
    """Return rows and targets of a loss and an accuracy that follows it, for two training sets."""
    rows = []
    for number, training_set in enumerate("ab"):
        for params in sizes:
            for multiple in (0.5, 1, 2, 5, 10):
                tokens = 20 * multiple * params
                loss = factor[number] * (1.7 + 400 / params**0.34 + 4000 / tokens**0.34)
                run = f"{training_set} {params:g} {multiple}"
                shared = {"run": run, "training_set": training_set, "params": params, "tokens": tokens}
                share = 0.25 + 0.75 / (1 + np.exp(4 * (loss - 3.0)))
                rows.append({**shared, "task": "loss", "task_kind": "loss", "value": loss})
                rows.append(
                    {
                        **{**shared, "task": "quiz", "task_kind": "accuracy", "loss_task": "loss"},
                        **{"chance": 0.25, "value": share},
                    }
                )
    frame = pd.DataFrame(rows)
    texts = {column.name: "str" for column in COLUMNS if column.kind is Kind.CATEGORICAL}
    return frame[[column.name for column in COLUMNS]].astype(texts), frame[["value"]]


SMALL, LARGE = ladder([5e7, 1e8, 2e8, 4e8, 8e8]), ladder([7e9])
LAWS = [ChinchillaLawPredictor, OvertrainingLawPredictor, TwoStepLawPredictor, ComputeSigmoidPredictor]


@pytest.mark.parametrize("make", [*LAWS, ScalingEnsemblePredictor])
def test_a_run_that_names_its_task_alone_gets_the_same_answer(make):
    predictor = make().fit(*SMALL, columns=COLUMNS)
    described = LARGE[0].assign(task_kind=pd.Series(np.nan, index=LARGE[0].index, dtype="str"), loss_task=np.nan)
    np.testing.assert_allclose(predictor.predict(described), predictor.predict(LARGE[0]), rtol=1e-12)


def errors_of(predictor, rows):
    predicted = predictor.predict(LARGE[0])["value"]
    return (predicted - LARGE[1]["value"]).abs()[LARGE[0]["task"].eq(rows)]


@pytest.fixture(scope="module")
def fitted():
    return {
        predictor.__name__: predictor().fit(*SMALL, columns=COLUMNS) for predictor in [*LAWS, ScalingEnsemblePredictor]
    }


@pytest.mark.parametrize("name", ["ChinchillaLawPredictor", "OvertrainingLawPredictor", "TwoStepLawPredictor"])
def test_the_loss_of_a_larger_model_is_that_of_the_law_of_its_training_set(fitted, name):
    assert errors_of(fitted[name], "loss").max() < 0.01


def test_the_two_step_law_extrapolates_an_accuracy_that_follows_the_loss(fitted):
    assert errors_of(fitted["TwoStepLawPredictor"], "quiz").max() < 0.01
    assert errors_of(fitted["ChinchillaLawPredictor"], "quiz").max() > 0.01


def test_compute_alone_gives_runs_of_one_compute_the_same_answer(fitted):
    rows = LARGE[0].iloc[[0, 0]].assign(params=[1e9, 2e9], tokens=[4e10, 2e10])
    predicted = fitted["ComputeSigmoidPredictor"].predict(rows)["value"]
    assert predicted.iloc[0] == pytest.approx(predicted.iloc[1])


def test_an_accuracy_stays_between_0_and_1(fitted):
    rows = LARGE[0].assign(params=1e14, tokens=1e16)
    for predictor in fitted.values():
        assert predictor.predict(rows)["value"][rows["task"] == "quiz"].between(0, 1).all()


def test_unknown_tasks_and_training_sets_have_a_law(fitted):
    rows = LARGE[0].assign(task="new", training_set="new")
    for predictor in fitted.values():
        assert np.isfinite(predictor.predict(rows)["value"]).all()


def test_weights_favor_the_law_that_predicted_more_compute_well(fitted):
    weights = fitted["ScalingEnsemblePredictor"].weights_
    assert sum(weights["accuracy"].values()) == pytest.approx(1)
    assert max(weights["accuracy"], key=weights["accuracy"].get) == "two_step_law"
    assert weights["loss"]["two_step_law"] == 0
    assert weights["loss"]["broken_law"] == 0
    assert weights["loss"]["compute_sigmoid"] < weights["loss"]["overtraining_law"]


@pytest.mark.parametrize("kind", [*LAWS, ScalingEnsemblePredictor])
def test_a_saved_law_predicts_the_same(kind, fitted, tmp_path):
    fitted[kind.__name__].save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(LARGE[0]), fitted[kind.__name__].predict(LARGE[0]))
