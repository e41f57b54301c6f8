"""A server of two champions, one of which rests on the other: both answer, each alone, or neither in one line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from bridged_project import DATASET, LATER, bridged_pair, bridged_results
from champion_project import NOTICE, TITLES
from serving_project import KNOWN, PLAIN, WRONG, request, served

import perfcast
from perfcast.cli.main import main
from perfcast.serving import api_models as response_models
from perfcast.serving.request_limits import DEFAULT_LIMITS

OTHER = {"processor": "Xeon Gold 6148", "chips": 1}
BODIES = {
    "compare": {"machines": [KNOWN, OTHER]},
    "rank": {"machines": [KNOWN, OTHER]},
    "similar": {"machines": [KNOWN], "count": 2},
    "what-if": {"machine": KNOWN, "vary": ["chips=1,2"]},
    "predict-measured": {"machines": [KNOWN], "measured": [{**KNOWN, "suite": "CINT2017rate", "score": 200}]},
}


@pytest.fixture(scope="module")
def address():
    with served(bridged_pair(), replace(DEFAULT_LIMITS, seconds=120.0)) as url:
        yield url


def list_tasks(payload):
    (machine,) = payload["machines"]
    return [estimate["task"] for estimate in machine["estimates"]]


def test_prediction_is_that_of_the_command(address, capsys):
    flags = ["--processor", KNOWN["processor"], "--chips", str(KNOWN["chips"]), "--json"]
    assert main(["predict", "--results", str(bridged_results()), *flags]) == 0
    payload = request(f"{address}/predict", KNOWN).json()
    assert payload == json.loads(capsys.readouterr().out)
    response_models.PredictResponse.model_validate(payload, extra="forbid")
    assert list_tasks(payload) == [*LATER, *TITLES]
    assert [basis["bridged_from"] for basis in payload["bases"]] == ["spec_cpu2017", ""]
    (machine,) = payload["machines"]
    estimates = {estimate["task"]: estimate for estimate in machine["estimates"]}
    assert len(machine["ratios"]) == len(LATER)
    for ratio in machine["ratios"]:
        new, old = estimates[ratio["task"]], estimates[ratio["base_task"]]
        assert ratio["median"] == pytest.approx(new["median"] / old["median"], rel=0.1)
        assert ratio["low"] <= ratio["median"] <= ratio["high"]


@pytest.mark.parametrize(
    ("suite", "tasks"),
    [("both", [*LATER, *TITLES]), ("2017", TITLES), ("2026", LATER), (DATASET, LATER)],
)
def test_suite_chooses_who_answers(address, suite, tasks):
    assert list_tasks(request(f"{address}/predict{PLAIN}&suite={suite}", KNOWN).json()) == tasks


def test_unknown_suite_gets_one_line(address):
    for suite in ("2019", "%00", "BOTH", "x" * 61):
        reply = request(f"{address}/predict?suite={suite}", KNOWN)
        assert (reply.status, "suite must" in reply.error or "suite String" in reply.error) == (422, True), reply.error
    for route, body in BODIES.items():
        reply = request(f"{address}/{route}", {**body, "suite": "2019"})
        assert (reply.status, "suite must be both or the end of a dataset" in reply.error) == (422, True), reply.error
        assert "spec_cpu2017 or spec_cpu2026" in reply.error
    assert request(f"{address}/predict{PLAIN}", KNOWN).status == 200


def test_decisions_of_both_equal_those_of_python(address):
    bridged = perfcast.load_champion(bridged_results() / "champion" / DATASET)
    for route, body in BODIES.items():
        operation = getattr(bridged, {"what-if": "what_if", "predict-measured": "predict"}.get(route, route))
        expected = operation(**body, suite="both").to_dict()
        reply = request(f"{address}/{route}", {**body, "suite": "both"})
        assert reply.status == 200, reply.error
        assert reply.json() == json.loads(json.dumps(expected)), route
        assert "SPECrate2026_int_base" in reply.body.decode(), route


def test_decisions_are_those_of_the_first_without_a_suite_as_in_commands(address):
    base = perfcast.load_champion(bridged_results() / "champion" / "spec_cpu2017")
    reply = request(f"{address}/compare", BODIES["compare"])
    assert reply.json() == json.loads(json.dumps(base.compare(**BODIES["compare"]).to_dict()))
    (combination, *_) = request(f"{address}/what-if", {**BODIES["what-if"], "suite": "2026"}).json()["combinations"]
    assert [estimate["task"] for estimate in combination["estimates"]] == LATER


def test_machines_that_cannot_be_used_do_not_stop_the_others(address):
    machines = request(f"{address}/predict{PLAIN}", [KNOWN, {"processor": "Zeus 1"}, WRONG]).json()["machines"]
    assert [machine["status"] for machine in machines] == ["ok", "refused", "refused"]
    assert len(machines[0]["estimates"]) == 8


def test_health_describes_both(address):
    payload = request(f"{address}/health").json()
    response_models.HealthResponse.model_validate(payload, extra="forbid")
    assert [suite["title"] for suite in payload["suites"]] == ["SPEC CPU2026", "SPEC CPU2017"]
    assert [suite["basis"]["tasks"] for suite in payload["suites"]] == [LATER, TITLES]
    assert [suite["basis"]["notice"] for suite in payload["suites"]] == ["", NOTICE]


def test_one_champion_takes_both_as_itself():
    with served(bridged_pair().last) as alone:
        assert list_tasks(request(f"{alone}/predict{PLAIN}&suite=both", KNOWN).json()) == LATER
        assert request(f"{alone}/predict{PLAIN}&suite=2017", KNOWN).status == 422
