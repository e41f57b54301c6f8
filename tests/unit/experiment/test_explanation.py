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
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.schema.table import Role, Table


def fitted(predictor, table: Table):
    inputs = [column.name for column in table.columns if column.role is not Role.TARGET]
    return predictor.fit(table.frame[inputs], table.frame[["score"]], columns=table.columns)


@pytest.fixture(scope="module")
def table() -> Table:
    return tiny_table(160)


def test_group_importance_ranks_the_decisive_group_first(table: Table) -> None:
    importance = group_importance(fitted(Ridge(), table), table, np.ones(160, dtype=bool), 0).set_index("group")
    assert set(importance.index) == {"memory", "processor", "system"}
    assert importance.loc["processor", "increase"] > 20
    assert abs(importance.loc["memory", "increase"]) < 2
    assert importance["increase"].idxmax() == "processor"


def test_group_importance_uses_only_the_given_rows(table: Table) -> None:
    predictor, rows = fitted(Ridge(), table), np.arange(160) < 80
    spoiled = replace(table, frame=table.frame.assign(score=np.where(rows, table.frame["score"], 1e9)))
    pd.testing.assert_frame_equal(
        group_importance(predictor, table, rows, 0), group_importance(predictor, spoiled, rows, 0)
    )


def test_attention_maps_are_written(table: Table, tmp_path: Path) -> None:
    network = fitted(GroupPoolingPredictor(d_token=8, d_block=16, epochs=1), table)
    write_explanation(network, table, np.ones(160, dtype=bool), 0, tmp_path)
    files = {path.stem: pd.read_csv(path, index_col=0) for path in tmp_path.glob("*.csv")}
    assert {"importance", "attention_processor", "attention_between_groups"} <= set(files)
    np.testing.assert_allclose(files["attention_between_groups"].sum(axis=1), 1.0, atol=1e-4)
