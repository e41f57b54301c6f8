"""Importance of feature groups for a fitted predictor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from factory import tiny_table

from perfcast.experiment.training import group_importance, write_explanation
from perfcast.predictors.linear import Ridge
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Role, Table


@pytest.fixture(scope="module")
def table() -> Table:
    return tiny_table(160)


def fitted(predictor: Predictor, table: Table) -> Predictor:
    inputs = [column.name for column in table.columns if column.role is not Role.TARGET]
    return predictor.fit(table.frame[inputs], table.frame[["score"]], columns=table.columns)


def test_group_importance_ranks_the_decisive_group_first_on_the_given_rows_alone(table: Table) -> None:
    predictor, rows = fitted(Ridge(), table), np.arange(160) < 80
    importance = group_importance(predictor, table, rows, 0)
    increase = importance.set_index("group")["increase"]
    assert set(increase.index) == {"memory", "processor", "system"}
    assert increase["processor"] == increase.max() > 20
    assert abs(increase["memory"]) < 2
    spoiled = replace(table, frame=table.frame.assign(score=np.where(rows, table.frame["score"], 1e9)))
    pd.testing.assert_frame_equal(importance, group_importance(predictor, spoiled, rows, 0))


def test_the_importance_is_written(table: Table, tmp_path: Path) -> None:
    write_explanation(fitted(Ridge(), table), table, np.ones(160, dtype=bool), 0, tmp_path)
    assert set(pd.read_csv(tmp_path / "importance.csv")["group"]) == {"memory", "processor", "system"}
