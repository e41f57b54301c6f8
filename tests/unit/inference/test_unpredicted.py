"""Outputs whose intervals are too wide to tell anything are refused with the reason, one by one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from deployment_project import KNOWN, champion

from perfcast.cli.rank import make_candidates
from perfcast.decisions.criteria import read_request
from perfcast.decisions.display import format_predictions
from perfcast.decisions.ranking import rank_machines
from perfcast.inference import PredictOptions
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import predict_batch
from perfcast.inference.prediction import OK, REFUSED
from perfcast.inference.user_measurements import read_measurements
from perfcast.uncertainty.conformal import ConformalCalibration
from perfcast.utils.errors import UserError

PLAIN = PredictOptions(neighbors=0, explain=False)


@cache
def wide(*tasks):
    """Return the champion with intervals of a factor of 1000 for some tasks, and of 2 for others."""
    known = champion()
    quantiles = {
        output: [place / 200 * (3.9 if not tasks or output.split("\x1f")[0] in tasks else 0.4) for place in range(201)]
        for output in known.calibrated.calibration.quantiles
    }
    state = {"base": 1.0, "weights": dict.fromkeys(known.calibrated.in_domain.names, 0.0), "most": 9.0}
    calibration = ConformalCalibration.from_state({**state, "quantiles": quantiles})
    return replace(known, calibrated=replace(known.calibrated, calibration=calibration))


def predict(by):
    return predict_batch([MachineEntry(1, "line 1", KNOWN)], by, PLAIN)


def test_one_output_is_refused_and_the_others_are_predicted():
    answer = predict(wide("ttft"))
    (machine,) = answer
    assert (machine.status, [each.task for each in machine.estimates]) == (OK, ["tpot"])
    assert [each.task for each in machine.unpredicted] == ["ttft"]
    assert "more than 20" in machine.notes[0] and "measured gpu: B200, GB200, H100, H200" in machine.notes[0]
    rows = answer.to_frame().set_index("task")
    assert (rows.loc["ttft", "status"], rows.loc["tpot", "status"]) == (REFUSED, OK)
    assert rows.loc["ttft", "message"].startswith("ttft cannot be predicted: its 90 % interval would span a factor of")
    assert rows.loc["ttft", ["estimate", "low", "high"]].isna().all()
    assert answer.to_dict()["machines"][0]["unpredicted"][0]["task"] == "ttft"


def test_a_machine_without_any_output_is_refused():
    answer = predict(wide())
    (machine,) = answer
    assert (machine.status, machine.estimates, len(answer.refused)) == (REFUSED, (), 1)
    assert list(answer.to_frame()["status"]) == [REFUSED] * 2
    assert "refused, tpot cannot be predicted" in format_predictions(answer)
    assert [each.status for each in predict(champion())] == [OK]


def test_a_ranking_refuses_what_it_cannot_predict():
    entries = make_candidates(KNOWN, [])
    with pytest.raises(UserError, match="cannot be ranked, but ttft cannot be predicted"):
        rank_machines(entries, wide("ttft"), read_request(["ttft <= 500"], wide("ttft")), PLAIN)
    assert rank_machines(entries, wide("ttft"), read_request(["tpot <= 50"], wide("ttft")), PLAIN).candidates


def test_a_result_of_a_setup_moves_its_deployments_most():
    measured = {**KNOWN, "backend": "vllm", "precision": "fp8"}
    others = [
        {**measured, "model": "qwen3-32b", "batch": 64, "gpu": gpu, "backend": backend}
        for gpu, backend in (("H200", "vllm"), ("H200", "sglang"), ("H100", "vllm"))
    ]
    known = champion()
    correlation = known.calibrated.correlation
    assert {"gpu", "setup", "identity"} <= set(correlation.shared)
    strong = replace(
        known,
        calibrated=replace(
            known.calibrated,
            correlation=type(correlation).from_state(
                {
                    **correlation.to_state(),
                    "shared": {**dict.fromkeys(correlation.shared, 0.0), "setup": 0.1},
                    "noise": 0.01,
                    "own": dict.fromkeys(
                        correlation.own if hasattr(correlation, "own") else correlation.per_output, 0.0
                    ),
                }
            ),
        ),
    )
    before = {
        each.line: each.estimates
        for each in predict_batch([MachineEntry(0, "known", measured)], strong, replace(PLAIN, tasks=("tpot",)))
    }[0][0].median
    result = MachineEntry(1, "mine", {**measured, "quantity": "tpot", "latency": f"{1.4 * before:g}"})
    measurements = read_measurements([result], strong)
    entries = [MachineEntry(line, "other", values) for line, values in enumerate(others)]
    answer = predict_batch(entries, strong, replace(PLAIN, tasks=("tpot",)), measurements)
    same, other_software, other_gpu = [machine.estimates[0].user_factor for machine in answer]
    assert same > 1.1 and other_software == other_gpu == 1
