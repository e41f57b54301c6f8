"""Scaling laws as predictors on a generated ladder."""

import numpy as np
import pandas as pd
import pytest
from reloaded import reloaded

from perfcast.domains.scaling.predictors.scaling_ensemble import (
    ScalingEnsemblePredictor,
)
from perfcast.domains.scaling.predictors.scaling_laws import (
    ChinchillaLawPredictor,
    ComputeSigmoidPredictor,
    OvertrainingLawPredictor,
    TwoStepLawPredictor,
)
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("task", Kind.CATEGORICAL, Role.KEY, "problem", tags=(Tag.TASK,)),
    Column("task_kind", Kind.CATEGORICAL, Role.KEY, "problem"),
    Column("loss_task", Kind.CATEGORICAL, Role.KEY, "problem"),
    Column("run", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.BLOCK,)),
    Column("training_set", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.IDENTITY,)),
    Column("chance", Kind.NUMERICAL, Role.FEATURE, "problem"),
    Column("params", Kind.NUMERICAL, Role.FEATURE, "run", tags=(Tag.SCALING,)),
    Column("tokens", Kind.NUMERICAL, Role.FEATURE, "run", tags=(Tag.SCALING,)),
)


def ladder(sizes, factor=(1.0, 1.2)):
    """Return rows and targets of a loss and an accuracy that follows it, for two training sets."""
    rows = []
    for scale, training_set in zip(factor, "ab", strict=True):
        for params in sizes:
            for multiple in (0.5, 1, 2, 5, 10):
                tokens = 20 * multiple * params
                loss = scale * (1.7 + 400 / params**0.34 + 4000 / tokens**0.34)
                share = 0.25 + 0.75 / (1 + np.exp(4 * (loss - 3.0)))
                shared = {
                    "run": f"{training_set} {params:g} {multiple}",
                    "training_set": training_set,
                }
                shared |= {"params": params, "tokens": tokens}
                rows.append(
                    {
                        **shared,
                        "task": "loss",
                        "task_kind": "loss",
                        "value": loss,
                    }
                )
                quiz = {
                    "task": "quiz",
                    "task_kind": "accuracy",
                    "loss_task": "loss",
                    "chance": 0.25,
                    "value": share,
                }
                rows.append({**shared, **quiz})
    frame = pd.DataFrame(rows)
    texts = {column.name: "str" for column in COLUMNS if column.kind is Kind.CATEGORICAL}
    return frame[[column.name for column in COLUMNS]].astype(texts), frame[["value"]]


SMALL = ladder([5e7, 1e8, 2e8, 4e8, 8e8])
LARGE = ladder([7e9])
LAWS = [
    ChinchillaLawPredictor,
    OvertrainingLawPredictor,
    TwoStepLawPredictor,
    ComputeSigmoidPredictor,
]


def test_a_task_alone_gives_the_same_answer_and_accuracies_stay_below_1(fitted):
    described = LARGE[0].assign(task_kind=pd.Series(np.nan, index=LARGE[0].index, dtype="str"), loss_task=np.nan)
    far = LARGE[0].assign(params=1e14, tokens=1e16)
    for predictor in fitted.values():
        np.testing.assert_allclose(predictor.predict(described), predictor.predict(LARGE[0]), rtol=1e-12)
        assert predictor.predict(far)["value"][far["task"] == "quiz"].between(0, 1).all()


@pytest.fixture(scope="module")
def fitted():
    return {kind.__name__: reloaded(kind().fit(*SMALL, columns=COLUMNS)) for kind in [*LAWS, ScalingEnsemblePredictor]}


def errors_of(predictor, rows):
    predicted = predictor.predict(LARGE[0])["value"]
    return (predicted - LARGE[1]["value"]).abs()[LARGE[0]["task"].eq(rows)]


def test_each_law_extrapolates_what_it_states_and_the_better_one_has_weight(fitted):
    for name in (
        "ChinchillaLawPredictor",
        "OvertrainingLawPredictor",
        "TwoStepLawPredictor",
    ):
        assert errors_of(fitted[name], "loss").max() < 0.01, name
    assert errors_of(fitted["TwoStepLawPredictor"], "quiz").max() < 0.01
    assert errors_of(fitted["ChinchillaLawPredictor"], "quiz").max() > 0.01
    rows = LARGE[0].iloc[[0, 0]].assign(params=[1e9, 2e9], tokens=[4e10, 2e10])  # of one compute
    first, second = fitted["ComputeSigmoidPredictor"].predict(rows)["value"]
    assert first == pytest.approx(second)
    weights = fitted["ScalingEnsemblePredictor"].weights_
    assert max(weights["accuracy"], key=weights["accuracy"].get) == "two_step_law"
    assert weights["loss"]["two_step_law"] == 0
    assert weights["loss"]["broken_law"] == 0
    assert weights["loss"]["compute_sigmoid"] < weights["loss"]["overtraining_law"]
