"""What a champion knows of measured machines, and which of them are nearest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from forecasting_project import FEATURES, SUITES, project

from perfcast.inference.champion import build_features
from perfcast.inference.reference_data import ReferenceData
from perfcast.schema.table import Role, Tag
from perfcast.uncertainty.in_domain import gower_distances


def test_the_nearest_measured_machine_of_a_measured_one_is_itself():
    champion = project().champion
    row = champion.reference_data.measured.frame.iloc[7]
    table = build_features("spec_cpu2017", row.to_frame().T, champion.reference_data.measured.columns, FEATURES)
    near = champion.neighbor_index.find_nearest(table.frame, table.frame["suite"], 3)[0]
    assert near[0][1] == pytest.approx(0, abs=1e-6)
    assert champion.reference_data.measured.frame["suite"].iloc[[place for place, _ in near]].eq(row["suite"]).all()
    distances = [far for _, far in near]
    assert distances == sorted(distances)


def test_the_nearest_are_those_of_sorting_all_by_distance_and_then_the_newest_first():
    champion = project().champion
    found = champion.neighbor_index
    table = build_features("spec_cpu2017", project().standard.frame.iloc[::40], project().standard.columns, FEATURES)
    tasks = table.frame["suite"]
    parts = list(found.calibrated.in_domain.parts())
    weights = found.calibrated.calibration.weights
    for count in (1, 5, 10_000):
        nearest = found.find_nearest(table.frame, tasks, count)
        for row, task, own in zip(found.calibrated.in_domain.encode(table.frame), tasks, nearest, strict=True):
            rows = np.flatnonzero(found.tasks == task)
            others = found.encoded[rows]
            far = sum(
                weights.get(group, 0.0) * gower_distances(row[part], others[:, part], numeric)
                for group, part, numeric in parts
            )
            expected = sorted(zip(far, -rows, strict=True))[:count]
            assert own == [(-row, pytest.approx(distance)) for distance, row in expected]


def test_what_all_measured_rows_of_a_part_agree_on_is_its_own():
    knowledge = project().champion.reference_data
    frame = knowledge.measured.frame
    group = next(column.group for column in knowledge.measured.columns if column.name == "cpu_model")
    names = [name for name in knowledge.measured.select(role=Role.FEATURE, group=group) if name != "cpu_model"]
    rows = frame.groupby("cpu_model")[names]
    expected = rows.first().where(rows.nunique() == 1)
    for part in expected.index:
        assert knowledge.find_common_values(Tag.ENTITY, part) == expected.loc[part].dropna().to_dict()
    assert knowledge.find_common_values(Tag.ENTITY, "no such part") == {}


def test_of_many_results_the_newest_of_every_part_and_task_are_known(monkeypatch):
    standard = project().standard
    whole = ReferenceData.gather(standard, project().raw, FEATURES)
    assert len(whole.measured.frame) == len(standard.frame)
    frame = whole.measured.frame
    questions = [frame["cpu_model"].astype("str"), frame["suite"].astype("str")]
    count = frame.groupby(questions).ngroups
    monkeypatch.setattr("perfcast.inference.reference_data.MAX_RESULTS", count)
    few = ReferenceData.gather(standard, project().raw, FEATURES)
    kept = few.measured.frame
    assert len(kept) == count
    assert kept.index.equals(pd.RangeIndex(count))
    newest = frame.groupby(questions)["published_month"].max()
    found = kept.set_index([kept["cpu_model"].astype("str"), kept["suite"].astype("str")])["published_month"]
    pd.testing.assert_series_equal(found.sort_index(), newest.sort_index(), check_names=False)
    # order and cells are those of the whole table
    again = frame[frame["result_id"].isin(kept["result_id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, again)


def test_where_not_every_part_can_be_known_every_task_is(monkeypatch):
    monkeypatch.setattr("perfcast.inference.reference_data.MAX_RESULTS", 8)
    kept = ReferenceData.gather(project().standard, project().raw, FEATURES).measured.frame
    assert kept["suite"].astype("str").value_counts().to_dict() == dict.fromkeys(SUITES, 2)
