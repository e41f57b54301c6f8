"""Forecasts of described machines: what is completed, what is refused, and what is answered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from forecasting_project import FEATURES, KNOWN, PLAIN, SUITES, asked, can_be, project

from perfcast.experiment.champion import fit_all_rows
from perfcast.inference import Champion, ParsedMachines, PredictOptions, parse_machines, predict_machines, read_machines
from perfcast.inference.champion import build_features
from perfcast.inference.explain import shapley_values
from perfcast.inference.imputation.spec_cpu2017 import RULES
from perfcast.inference.predict import BATCH_SIZE
from perfcast.inference.reference_data import ReferenceData, describing_columns
from perfcast.predictors.linear import Ridge
from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.testing.generated_results import fake_table
from perfcast.utils.errors import UserError


def test_a_machine_without_a_task_is_forecast_for_all():
    answer = asked([KNOWN, {"suite": "CINT2017rate", "chips": 1, "cores": 4, "clock": "2 GHz", "family": "Skylake-SP"}])
    frame = answer.to_frame()
    assert frame["line"].tolist() == [1, 1, 1, 1, 2]
    assert frame["task"].tolist() == [*SUITES, "CINT2017rate"]
    assert (frame["estimate"] > 0).all()
    assert set(frame["champion"]) == {"ridge"}
    assert set(frame["unit"]) == {"ratio to reference"}
    assert frame["features_missing"].iloc[0] < frame["features_missing"].iloc[-1] < frame["features"].iloc[0]


def test_assuming_leaves_fewer_features_missing():
    bare, usual = (asked(KNOWN, asked=replace(PLAIN, assume=one)).to_frame() for one in (False, True))
    assert (usual["features_missing"] < bare["features_missing"]).all()


def test_every_estimate_has_an_interval_that_widens_with_its_level_and_with_time():
    usual, surer = (asked(KNOWN, asked=replace(PLAIN, level=level)).to_frame() for level in (0.9, 0.5))
    for frame in (usual, surer):
        assert (frame["low"] < frame["estimate"]).all() and (frame["estimate"] < frame["high"]).all()
        assert frame["in_domain_score"].between(0, 1).all()
    assert (surer["high"] < usual["high"]).all()
    later = asked(KNOWN, asked=replace(PLAIN, when=pd.Timestamp("2040-01-01"))).to_frame()
    assert (later["in_domain_score"] <= usual["in_domain_score"]).all()
    assert later["estimate"].equals(usual["estimate"])


def test_a_champion_without_calibration_gives_no_interval_and_no_neighbor():
    bare = replace(project().champion, calibrated=None, neighbor_index=None)
    answer = asked(KNOWN, bare, PredictOptions())
    frame = answer.to_frame()
    assert frame[["low", "high", "in_domain_score", "least_similar_group"]].isna().all(axis=None)
    assert not answer.machines[0].estimates[0].neighbors


def test_given_cells_reach_the_predictor_unchanged():
    """Described by all it has, a measured row is answered as the predictor answers the row itself."""
    champion = project().champion
    columns = [column.name for column in describing_columns(project().standard, FEATURES)]
    # Without a missing cell nothing is left to complete.
    rows = champion.reference_data.measured.frame.bfill().ffill().head(20)
    rows = rows.assign(
        **RULES.fill_implied(rows.drop(columns=["mem_eff_mts"]).assign(mem_eff_mts=np.nan))[["mem_eff_mts"]]
    )
    table = build_features("spec_cpu2017", rows, champion.reference_data.measured.columns, FEATURES)
    expected = champion.predictor.predict(table.frame)["base_score"]
    assert rows[columns].notna().all(axis=None)
    try:
        answer = predict_machines(ParsedMachines(rows[columns]), champion, PLAIN)
    except UserError:  # filling crosswise may make machines that cannot be
        possible = [n for n in rows.index if can_be(rows.loc[[n]])]
        answer = predict_machines(ParsedMachines(rows.loc[possible, columns]), champion, PLAIN)
        expected = expected[possible]
    assert len(answer.machines) > 5
    assert answer.to_frame()["estimate"].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9)


def test_more_cores_give_more_throughput():
    one, two = asked([{**KNOWN, "chips": chips, "suite": "CINT2017rate"} for chips in (1, 2)]).to_frame()["estimate"]
    assert two > one


def test_features_on_which_the_parts_rows_agree_are_filled():
    champion = project().champion
    frame = champion.reference_data.measured.frame
    part = frame.loc[frame["l3_mb_per_chip"].notna(), "cpu_model"].iloc[0]
    others = replace(champion.reference_data.measured, frame=frame[frame["cpu_model"] != part])
    without = replace(champion, reference_data=ReferenceData(others, champion.reference_data.cpu_facts))
    machine = {"processor": part, "suite": "CINT2017rate"}
    missing = [asked(machine, one).to_frame()["features_missing"].iloc[0] for one in (champion, without)]
    assert missing[0] < missing[1]


def test_a_new_part_is_forecast_by_what_is_said_of_it():
    machine = {"processor": "Zeus 1", "cores": 96, "clock": "2.5 GHz", "chips": 2, "family": "Skylake-SP"}
    answer = asked(machine, asked=PredictOptions(neighbors=1))
    assert "no data names the processor 'Zeus 1'" in answer.machines[0].notes[0]
    values = {value.column: (value.value, value.origin) for value in answer.machines[0].values}
    assert values["cores_enabled_total"] == (192.0, "implied")
    assert values["isa"] == ("x86", "assumed")


def test_drivers_multiply_to_the_forecast():
    answer = asked(KNOWN, asked=PredictOptions(neighbors=0))
    champion = project().champion
    for one in answer.machines[0].estimates:
        typical = champion.reference_data.measured.frame.iloc[[champion.typical[one.task]]]
        table = build_features("spec_cpu2017", typical, champion.reference_data.measured.columns, FEATURES)
        start = champion.predictor.predict(table.frame)["base_score"].iloc[0]
        product = np.prod([driver.factor for driver in one.drivers])
        assert start * product == pytest.approx(one.median, rel=5e-3)
        assert one.typical.score == typical["base_score"].iloc[0]


def test_shapley_values_share_an_interaction_equally():
    own, typical = (
        pd.DataFrame({"a": [2.0], "b": [3.0], "c": [9.0]}),
        pd.DataFrame({"a": [0.0], "b": [0.0], "c": [9.0]}),
    )
    groups = {"first": ["a"], "second": ["b"], "third": ["c"]}

    def log_predict(frame):
        return (frame["a"] + frame["a"] * frame["b"]).to_numpy()[:, None]

    found = shapley_values(own, typical, groups, log_predict)
    assert found[0, :, 0].tolist() == pytest.approx([5.0, 3.0, 0.0])


def test_batches_say_what_a_single_forecast_says():
    machines = [{**KNOWN, "chips": 1 + number % 2, "suite": "CINT2017rate"} for number in range(BATCH_SIZE + 3)]
    champion = project().champion
    described = parse_machines(read_machines(machines), champion)
    together = predict_machines(described, champion, PLAIN)
    assert [one.line for one in together] == list(range(1, BATCH_SIZE + 4))
    assert together.machines[-1] == replace(asked(machines[-1]).machines[0], line=BATCH_SIZE + 3)


def test_a_machine_is_forecast_for_the_targets_that_its_task_has():
    table = fake_table(rows=60, seed=0)
    score, is_float = table.frame["score"], table.frame["suite"] == "float"
    frame = table.frame.assign(score=score.where(~is_float), second=score.where(is_float))
    second = Column("second", Kind.NUMERICAL, Role.TARGET, "workload", "points")
    standard = build_table("fake", frame, (*table.columns, second))
    predictor, _ = fit_all_rows(standard, {"params": lambda seed: Ridge()}, 0, None)
    champion = Champion("fake", "ridge", "quick", (), predictor, ReferenceData(standard, pd.DataFrame()))
    found = asked([{"part": "part 001", "chips": 2}], champion, PredictOptions()).to_frame()
    assert found[["task", "target", "unit"]].to_numpy().tolist() == [
        ["float", "second", "points"],
        ["integer", "score", ""],
    ]
    assert (found["estimate"] > 0).all()
