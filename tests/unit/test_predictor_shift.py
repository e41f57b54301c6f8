"""How new a machine is to a training part, and what that decides."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from law_machines import COLUMNS, machines, scores

from perfcast.predictors.hybrid.residual_stacking import HybridPredictor
from perfcast.predictors.hybrid.training_shift import ANY, SEEN_CPU, UNSEEN_CPU, UNSEEN_MICROARCHITECTURE, TrainingShift
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, Tag

PART = Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,))


def test_cpu_models_and_microarchitectures_are_separate() -> None:
    train = pd.DataFrame({"part": ["a", "b"], "family": ["Naples", "Rome"]})
    asked = pd.DataFrame({"part": ["a", "c", "d", "e"], "family": ["Naples", "Rome", "Milan", None]})
    shift = TrainingShift.fit(train, (PART,))
    assert shift.of(asked).tolist() == [SEEN_CPU, UNSEEN_CPU, UNSEEN_MICROARCHITECTURE, UNSEEN_MICROARCHITECTURE]
    assert TrainingShift.from_state(shift.to_state()).of(asked).tolist() == shift.of(asked).tolist()


def test_without_an_entity_every_shift_is_any() -> None:
    train = pd.DataFrame({"family": ["Naples"]})
    assert TrainingShift.fit(train, ()).of(train).tolist() == [ANY]


class ByPart(Predictor):
    """Forecasts a residual of 0.2 for every row."""

    def _fit(self, X, log_y, validation): ...

    def _predict(self, X):
        return np.full((len(X), 1), 0.2)

    def _save(self, folder): ...

    def _load(self, folder): ...


class Corrected(HybridPredictor):
    announced, backtest_weights = True, True

    def _learners(self):
        return {"by part": ByPart()}


def test_a_learner_counts_for_the_rows_that_it_is_right_about() -> None:
    train = machines(1200)
    late = np.arange(len(train)) >= 1000
    known = np.arange(len(train)) % 2 == 0
    train["part"] = np.where(known, "old", np.where(late, "new", "other"))
    y = scores(train).mul(np.where(late & known, np.exp(0.2), 1.0), axis=0)
    columns = (*COLUMNS, PART)
    fitted = Corrected().fit(train, y, columns=columns, validation=late)
    weight = {shift: weights["by part"] for shift, weights in fitted.weights_.items()}
    assert (weight[SEEN_CPU], weight[UNSEEN_CPU]) == (1.0, 0.0)
    assert weight[UNSEEN_MICROARCHITECTURE] == weight[ANY]
    asked = machines(2, seed=3).assign(part=["old", "never seen"])
    laws = np.sqrt(fitted.laws_["analytical"].predict(asked) * fitted.laws_["analytical_time"].predict(asked))
    assert np.log(fitted.predict(asked) / laws).iloc[0, 0] == pytest.approx(0.2)
