"""How new a machine is to a training part, and what that decides."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from law_machines import COLUMNS, machines, scores

from perfcast.predictors._law_residual import LawResidualPredictor
from perfcast.predictors._novelty import ANY, KNOWN_PART, NEW_CORE, NEW_PART, Novelty
from perfcast.predictors.base import Predictor
from perfcast.schema import Column, Kind, Role, Tag

PART = Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,))


def test_parts_and_cores_are_told_apart() -> None:
    train = pd.DataFrame({"part": ["a", "b"], "family": ["Naples", "Rome"]})
    asked = pd.DataFrame({"part": ["a", "c", "d", "e"], "family": ["Naples", "Rome", "Milan", None]})
    novelty = Novelty.fit(train, (PART,))
    assert novelty.of(asked).tolist() == [KNOWN_PART, NEW_PART, NEW_CORE, NEW_CORE]
    assert Novelty.from_state(novelty.to_state()).of(asked).tolist() == novelty.of(asked).tolist()


def test_without_an_entity_nothing_is_known_of_novelty() -> None:
    train = pd.DataFrame({"family": ["Naples"]})
    assert Novelty.fit(train, ()).of(train).tolist() == [ANY]


class ByPart(Predictor):
    """Forecasts a residual of 0.2 for every row."""

    def _fit(self, X, log_y, valid): ...

    def _predict(self, X):
        return np.full((len(X), 1), 0.2)

    def _save(self, folder): ...

    def _load(self, folder): ...


class Corrected(LawResidualPredictor):
    announced, rehearsed = True, True

    def _learners(self):
        return {"by part": ByPart()}


def test_a_learner_counts_for_the_rows_that_it_is_right_about() -> None:
    train = machines(1200)
    late = np.arange(len(train)) >= 1000
    known = np.arange(len(train)) % 2 == 0
    train["part"] = np.where(known, "old", np.where(late, "new", "other"))
    y = scores(train).mul(np.where(late & known, np.exp(0.2), 1.0), axis=0)
    columns = (*COLUMNS, PART)
    fitted = Corrected().fit(train, y, columns=columns, valid=late)
    weight = {novelty: weights["by part"] for novelty, weights in fitted.weights_.items()}
    assert (weight[KNOWN_PART], weight[NEW_PART]) == (1.0, 0.0)
    assert weight[NEW_CORE] == weight[ANY]
    asked = machines(2, seed=3).assign(part=["old", "never seen"])
    laws = np.sqrt(fitted.laws_["law"].predict(asked) * fitted.laws_["time_law"].predict(asked))
    assert np.log(fitted.predict(asked) / laws).iloc[0, 0] == pytest.approx(0.2)
