"""Predictions of described machines: imputation, intervals, neighbors and drivers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import FEATURES, KNOWN, PLAIN, SUITES, is_possible, make_machines, predict, project, read_cells
from generated_results import fake_table

from perfcast.domains.servers.server_rules import SPEC_CPU2017 as RULES
from perfcast.experiment.champion import fit_all_rows
from perfcast.inference import Champion, PredictOptions, parse_machines, predict_machines, read_machines
from perfcast.inference.cells import Cells
from perfcast.inference.champion import build_features
from perfcast.inference.explain import shapley_values
from perfcast.inference.predict import BATCH_SIZE
from perfcast.inference.reference_data import ReferenceData, describing_columns
from perfcast.predictors.linear import Ridge
from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.utils.errors import UserError


def test_predict_machines_covers_all_tasks_by_default():
    answer = predict(
        [KNOWN, {"suite": "CINT2017rate", "chips": 1, "cores": 4, "clock": "2 GHz", "family": "Skylake-SP"}]
    )
    frame = answer.to_frame()
    assert frame["line"].tolist() == [1, 1, 1, 1, 2]
    assert frame["task"].tolist() == [*SUITES, "CINT2017rate"]
    assert (frame["estimate"] > 0).all()
    assert set(frame["champion"]) == {"ridge"}
    assert set(frame["unit"]) == {"ratio to reference"}
    assert frame["features_missing"].iloc[0] < frame["features_missing"].iloc[-1] < frame["features"].iloc[0]


def test_assume_reduces_missing_features():
    bare, usual = (predict(KNOWN, options=replace(PLAIN, assume=assume)).to_frame() for assume in (False, True))
    assert (usual["features_missing"] < bare["features_missing"]).all()


def test_intervals_widen_with_level_and_time():
    usual, surer = (predict(KNOWN, options=replace(PLAIN, level=level)).to_frame() for level in (0.9, 0.5))
    for frame in (usual, surer):
        assert (frame["low"] < frame["estimate"]).all() and (frame["estimate"] < frame["high"]).all()
        assert frame["in_domain_score"].between(0, 1).all()
    assert (surer["high"] < usual["high"]).all()
    later = predict(KNOWN, options=replace(PLAIN, when=pd.Timestamp("2040-01-01"))).to_frame()
    assert (later["in_domain_score"] <= usual["in_domain_score"]).all()
    assert later["estimate"].equals(usual["estimate"])


def test_uncalibrated_champion_gives_no_interval_and_no_neighbor():
    bare = replace(project().champion, calibrated=None, neighbor_index=None)
    answer = predict(KNOWN, bare, PredictOptions())
    frame = answer.to_frame()
    assert frame[["low", "high", "in_domain_score"]].isna().all(axis=None)
    assert not answer.machines[0].estimates[0].neighbors


def test_given_cells_reach_the_predictor_unchanged():
    """Described by all it has, a measured row is answered as the predictor answers the row itself."""
    champion = project().champion
    columns = [column.name for column in describing_columns(project().standard, FEATURES)]
    # Without a missing cell nothing is left to complete.
    rows = champion.reference_data.measured.frame.bfill().ffill().head(20)
    without = read_cells(rows.assign(mem_eff_mts=np.nan))
    rows = rows.assign(mem_eff_mts=RULES.fill_implied(without)["mem_eff_mts"])
    table = build_features("spec_cpu2017", rows, champion.reference_data.measured.columns, FEATURES)
    expected = champion.predictor.predict(table.frame)["base_score"]
    assert rows[columns].notna().all(axis=None)
    try:
        answer = predict_machines(make_machines(rows[columns]), champion, PLAIN)
    except UserError:  # filling crosswise may make machines that cannot be
        possible = [n for n in rows.index if is_possible(rows.loc[[n]])]
        answer = predict_machines(make_machines(rows.loc[possible, columns]), champion, PLAIN)
        expected = expected[possible]
    assert len(answer.machines) > 5
    assert answer.to_frame()["estimate"].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9)


def test_more_cores_give_more_throughput():
    one_chip, two_chips = predict([{**KNOWN, "chips": chips, "suite": "CINT2017rate"} for chips in (1, 2)]).to_frame()[
        "estimate"
    ]
    assert two_chips > one_chip


def test_common_values_of_a_cpu_model_are_filled():
    champion = project().champion
    frame = champion.reference_data.measured.frame
    cpu_model = frame.loc[frame["l3_mb_per_chip"].notna(), "cpu_model"].iloc[0]
    others = replace(champion.reference_data.measured, frame=frame[frame["cpu_model"] != cpu_model])
    without = replace(champion, reference_data=ReferenceData(others, champion.reference_data.entity_facts))
    machine = {"processor": cpu_model, "suite": "CINT2017rate"}
    missing = [predict(machine, candidate).to_frame()["features_missing"].iloc[0] for candidate in (champion, without)]
    assert missing[0] < missing[1]


def test_new_cpu_model_is_predicted_from_its_fields():
    machine = {"processor": "Zeus 1", "cores": 96, "clock": "2.5 GHz", "chips": 2, "family": "Skylake-SP"}
    answer = predict(machine, options=PredictOptions(neighbors=1))
    assert "no data names the processor 'Zeus 1'" in answer.machines[0].notes[0]
    values = {value.column: (value.value, value.origin) for value in answer.machines[0].values}
    assert values["cores_enabled_total"] == (192.0, "implied")
    assert values["isa"] == ("x86", "assumed")


def test_drivers_multiply_to_the_median():
    answer = predict(KNOWN, options=PredictOptions(neighbors=0))
    champion = project().champion
    for estimate in answer.machines[0].estimates:
        typical_row = champion.reference_data.measured.frame.iloc[[champion.typical_rows[estimate.task]]]
        table = build_features("spec_cpu2017", typical_row, champion.reference_data.measured.columns, FEATURES)
        start = champion.predictor.predict(table.frame)["base_score"].iloc[0]
        product = np.prod([driver.factor for driver in estimate.drivers])
        assert start * product == pytest.approx(estimate.median, rel=5e-3)
        assert estimate.typical_machine.score == typical_row["base_score"].iloc[0]


def test_dates_are_a_group_of_values_and_drivers():
    prediction = predict({**KNOWN, "test_month": "2016-01"}, options=PredictOptions(neighbors=0)).machines[0]
    groups = {value.column: value.group for value in prediction.values}
    assert groups["test_month"] == "dates"
    drivers = {driver.group for estimate in prediction.estimates for driver in estimate.drivers}
    assert "provenance" not in {*groups.values(), *drivers}


def test_shapley_values_share_an_interaction_equally():
    machine, typical_machine = (
        Cells({name: np.array([value]) for name, value in cells.items()}, np.zeros(1))
        for cells in ({"a": 2.0, "b": 3.0, "c": 9.0}, {"a": 0.0, "b": 0.0, "c": 9.0})
    )
    groups = {"first": ["a"], "second": ["b"], "third": ["c"]}

    def log_predict(cells):
        return (cells["a"] + cells["a"] * cells["b"])[:, None]

    contributions = shapley_values(machine, typical_machine, groups, log_predict)
    assert contributions[0, :, 0].tolist() == pytest.approx([5.0, 3.0, 0.0])


def test_batch_predictions_equal_single_ones():
    machines = [{**KNOWN, "chips": 1 + number % 2, "suite": "CINT2017rate"} for number in range(BATCH_SIZE + 3)]
    champion = project().champion
    described = parse_machines(read_machines(machines), champion)
    together = predict_machines(described, champion, PLAIN)
    assert [prediction.line for prediction in together] == list(range(1, BATCH_SIZE + 4))
    assert together.machines[-1] == replace(predict(machines[-1]).machines[0], line=BATCH_SIZE + 3)


def test_predict_machines_covers_the_targets_of_the_task():
    table = fake_table(rows=60, seed=0)
    score, is_float = table.frame["score"], table.frame["suite"] == "float"
    frame = table.frame.assign(score=score.where(~is_float), second=score.where(is_float))
    second = Column("second", Kind.NUMERICAL, Role.TARGET, "workload", "points")
    standard = build_table("fake", frame, (*table.columns, second))
    predictor, _ = fit_all_rows(standard, {"params": lambda seed: Ridge()}, 0, None)
    champion = Champion("fake", "ridge", "quick", (), predictor, ReferenceData(standard, pd.DataFrame()))
    predicted = predict([{"part": "part 001", "chips": 2}], champion, PredictOptions()).to_frame()
    assert predicted[["task", "target", "unit"]].to_numpy().tolist() == [
        ["float", "second", "points"],
        ["integer", "score", ""],
    ]
    assert (predicted["estimate"] > 0).all()
