"""Routes of decisions answer as Python does, and refuse in one line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from champion_project import project
from serving_project import KNOWN, request, served

import perfcast
from perfcast.serving.request_limits import DEFAULT_LIMITS

OTHER = {"processor": "Xeon Gold 6148", "chips": 1}
MEASURED = [{**KNOWN, "suite": "CINT2017rate", "score": 200}]


@pytest.fixture(scope="module")
def server():
    with served(project().champion, replace(DEFAULT_LIMITS, seconds=120.0)) as address:
        yield address


@pytest.fixture(scope="module")
def champion():
    return perfcast.load_champion(project().folder)


def plain(answer):
    return json.loads(json.dumps(answer.to_dict()))


def test_decisions_equal_those_of_python(server, champion):
    candidates = [{**KNOWN, "price": 3000, "name": "two"}, {**OTHER, "price": 2000, "name": "one"}]
    ranking = {"by": "score/cost", "targets": ["CINT2017rate >= 100"], "electricity_price": 0.3, "years": 4}
    expected = {
        "compare": ({"machines": [KNOWN, OTHER]}, champion.compare([KNOWN, OTHER])),
        "rank": ({"machines": candidates, **ranking}, champion.rank(candidates, **ranking)),
        "similar": ({"machines": [KNOWN], "count": 2}, champion.similar(KNOWN, count=2)),
        "what-if": ({"machine": KNOWN, "vary": ["chips=1,2"]}, champion.what_if(KNOWN, vary="chips=1,2")),
        "predict-measured": (
            {"machines": [KNOWN], "measured": MEASURED},
            champion.predict(KNOWN, measured=MEASURED),
        ),
    }
    for name, (body, answer) in expected.items():
        reply = request(f"{server}/{name}", body)
        assert reply.status == 200, (name, reply.body[:300])
        assert reply.json() == plain(answer), name


@pytest.mark.parametrize(
    ("name", "body", "status", "words"),
    [
        ("compare", {"machines": [KNOWN]}, 422, "2 to 8 machines"),
        ("rank", {"machines": [KNOWN, OTHER], "targets": ["fast"]}, 422, "targets must be TASK >= NUMBER"),
        ("rank", {"machines": [KNOWN, OTHER], "years": 0}, 422, "years must be"),
        ("similar", {"machines": [KNOWN], "tasks": ["nothing"]}, 422, "a task must be one of"),
        ("what-if", {"machine": KNOWN, "vary": ["cores=1..8:0"]}, 422, "step of vary cores"),
        ("what-if", {"machine": KNOWN, "vary": ["tdp=100..1000:0.5"]}, 422, "at most 1000 combinations"),
        ("compare", {"machines": [KNOWN] * 1001}, 413, "at most 1000 machines"),
        ("compare", {"machines": [KNOWN, OTHER], "color": 1}, 422, "color"),
        ("compare", {"machines": 3}, 400, "must describe a machine"),
        ("rank", {"machines": [KNOWN, OTHER], "sure": 2}, 422, "sure"),
        ("similar", {}, 400, "must describe a machine"),
    ],
)
def test_decisions_are_refused_in_one_line(server, name, body, status, words):
    reply = request(f"{server}/{name}", body)
    assert (reply.status, words in reply.error) == (status, True), reply.error
