"""Measured machines that a champion holds, and the nearest of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from champion_project import FEATURES, SUITES, project

from perfcast.inference.champion import build_features
from perfcast.inference.reference_data import ReferenceData
from perfcast.schema.table import Role, Tag
from perfcast.uncertainty.in_domain import gower_distances


def test_find_nearest_of_a_measured_machine_is_itself():
    champion = project().champion
    row = champion.reference_data.measured.frame.iloc[7]
    table = build_features("spec_cpu2017", row.to_frame().T, champion.reference_data.measured.columns, FEATURES)
    near = champion.neighbor_index.find_nearest(table.frame, table.frame["suite"], 3)[0]
    assert near[0][1] == pytest.approx(0, abs=1e-6)
    assert (
        champion.reference_data.measured.frame["suite"].iloc[[position for position, _ in near]].eq(row["suite"]).all()
    )
    distances = [far for _, far in near]
    assert distances == sorted(distances)


def test_find_nearest_sorts_by_distance_and_then_newest_first():
    champion = project().champion
    index = champion.neighbor_index
    table = build_features("spec_cpu2017", project().standard.frame.iloc[::40], project().standard.columns, FEATURES)
    tasks = table.frame["suite"]
    spans = list(index.calibrated.in_domain.parts())
    weights = index.calibrated.calibration.weights
    cpu_models = champion.reference_data.measured.frame["cpu_model"].to_numpy()
    for count in (1, 5, 10_000):
        nearest = index.find_nearest(table.frame, tasks, count)
        encoded = index.calibrated.in_domain.encode(table.frame).astype(np.float32)
        described = zip(encoded, tasks, table.frame["cpu_model"], nearest, strict=True)
        for row, task, cpu_model, neighbors in described:
            rows = np.flatnonzero(index.tasks == task)
            others = index.encoded[rows]
            far = sum(
                max(weights.get(group, 0.0), index.calibrated.calibration.base)
                * gower_distances(row[span], others[:, span], numeric)
                for group, span, numeric in spans
            )
            far += index.calibrated.calibration.base * (cpu_models[rows] != cpu_model)
            expected = sorted(zip(far, -rows, strict=True))[:count]
            assert neighbors == [(-row, pytest.approx(distance)) for distance, row in expected]


def test_a_champion_keeps_its_reference_data_in_a_folder():
    files = {path.name for path in (project().folder / "reference_data").iterdir()}
    assert files == {"measured.parquet", "cpu_models.parquet", "neighbors.npy"}


def test_find_common_values_of_a_cpu_model():
    reference_data = project().champion.reference_data
    frame = reference_data.measured.frame
    group = next(column.group for column in reference_data.measured.columns if column.name == "cpu_model")
    names = [name for name in reference_data.measured.select(role=Role.FEATURE, group=group) if name != "cpu_model"]
    rows = frame.groupby("cpu_model")[names]
    expected = rows.first().where(rows.nunique() == 1)
    for cpu_model in expected.index:
        assert reference_data.find_common_values(Tag.ENTITY, cpu_model) == expected.loc[cpu_model].dropna().to_dict()
    assert reference_data.find_common_values(Tag.ENTITY, "no such model") == {}


def test_gather_keeps_the_newest_result_of_every_output(monkeypatch):
    standard = project().standard
    whole = ReferenceData.gather(standard, project().raw, FEATURES)
    assert len(whole.measured.frame) == len(standard.frame)
    frame = whole.measured.frame
    outputs = [frame["cpu_model"].astype("str"), frame["suite"].astype("str")]
    count = frame.groupby(outputs).ngroups
    monkeypatch.setattr("perfcast.inference.reference_data.MAX_RESULTS", count)
    reduced = ReferenceData.gather(standard, project().raw, FEATURES)
    newest_rows = reduced.measured.frame
    assert len(newest_rows) == count
    assert newest_rows.index.equals(pd.RangeIndex(count))
    newest = frame.groupby(outputs)["published_month"].max()
    newest_of_rows = newest_rows.set_index(
        [newest_rows["cpu_model"].astype("str"), newest_rows["suite"].astype("str")]
    )["published_month"]
    pd.testing.assert_series_equal(newest_of_rows.sort_index(), newest.sort_index(), check_names=False)
    # order and cells are those of the whole table
    again = frame[frame["result_id"].isin(newest_rows["result_id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(newest_rows, again)


def test_gather_keeps_every_task_within_the_limit(monkeypatch):
    monkeypatch.setattr("perfcast.inference.reference_data.MAX_RESULTS", 8)
    measured = ReferenceData.gather(project().standard, project().raw, FEATURES).measured.frame
    assert measured["suite"].astype("str").value_counts().to_dict() == dict.fromkeys(SUITES, 2)
