"""Predictors of accelerators on generated results: what is known of a pair, of an accelerator, and of neither."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.accelerators.datasets.mlperf_inference import build
from perfcast.domains.accelerators.features.mlperf_inference import derive
from perfcast.domains.accelerators.predictors.distance import (
    ENTITY,
    GENERATION,
    NEW,
    PAIR,
    PairShift,
)
from perfcast.domains.accelerators.predictors.last_round import LastRoundPredictor
from perfcast.domains.accelerators.predictors.pooled_effects import (
    PooledEffectsPredictor,
)
from perfcast.domains.accelerators.sources.mlperf_inference import SOURCE
from perfcast.domains.accelerators.testing.mlperf_inference import write
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Role, Table

TARGET = "throughput"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("archive")
    write(folder, rows=400, seed=5)
    return derive(build({SOURCE: folder}, {}).table)


def fit(predictor: Predictor, table: Table, rows: np.ndarray) -> Predictor:
    columns = tuple(column for column in table.columns if column.role is not Role.TARGET or column.name == TARGET)
    frame = table.frame[rows]
    return predictor.fit(frame.drop(columns=TARGET), frame[[TARGET]], columns=columns)


def error(predictor: Predictor, frame: pd.DataFrame) -> float:
    return float(np.abs(np.log(predictor.predict(frame)[TARGET] / frame[TARGET])).median())


def test_effects_predict_the_next_round_and_a_new_accelerator_better_than_the_task_alone(
    table: Table,
) -> None:
    frame = table.frame
    for train in (
        (frame["round"] != "v5.1").to_numpy(),
        (frame["accelerator"] != "H100 SXM").to_numpy(),
    ):
        tasks = np.log(frame[TARGET][train]).groupby(frame["task"][train].astype(str)).median()
        test = frame[~train & frame["task"].astype(str).isin(tasks.index).to_numpy()]
        of_task = np.abs(np.log(test[TARGET]) - test["task"].astype(str).map(tasks).astype(float)).median()
        assert error(fit(PooledEffectsPredictor(), table, train), test) < 0.6 * of_task


def test_a_known_pair_has_its_last_result_and_no_older_one(table: Table) -> None:
    frame = table.frame
    newest = frame[frame["year"] == frame.groupby(["task", "accelerator"], observed=True)["year"].transform("max")]
    alike = ["task", "accelerator", "variant", "triton", "count"]
    once = newest[~newest.duplicated(alike, keep=False)]
    assert len(once) > 20
    other = {"_target_": "perfcast.predictors.baselines.NearestPredictor"}
    predictor = fit(
        LastRoundPredictor(others={"other": other}),
        table,
        np.ones(len(frame), dtype=bool),
    )
    np.testing.assert_allclose(predictor.predict(once)[TARGET], once[TARGET], rtol=1e-9)
    both = {
        "other": other,
        "ridge": {"_target_": "perfcast.predictors.linear.Ridge"},
    }
    known = (frame["accelerator"] != "H100 SXM").to_numpy()
    limit = 0.01
    mean = fit(
        LastRoundPredictor(others=both, limit=limit),
        table,
        known,
    ).predict(frame[~known])[TARGET]
    first = fit(
        LastRoundPredictor(others={"other": other}),
        table,
        known,
    ).predict(frame[~known])[TARGET]
    assert 0 < np.abs(np.log(mean / first)).max() <= limit / 2 + 1e-9


def test_distance_is_that_of_the_pair_the_accelerator_the_generation_or_none(
    table: Table,
) -> None:
    frame = table.frame.astype(
        {
            "task": "object",
            "accelerator": "object",
            "generation": "object",
        }
    )
    row = frame.iloc[[0]]
    rows = pd.concat(
        [
            row,
            row.assign(task="never seen"),
            row.assign(accelerator="never seen"),
            row.assign(accelerator="never seen", generation="never seen"),
        ]
    )
    assert PairShift.fit(frame, table.columns).of(rows).tolist() == [
        PAIR,
        ENTITY,
        GENERATION,
        NEW,
    ]
