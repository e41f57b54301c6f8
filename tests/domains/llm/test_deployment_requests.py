"""The server answers for deployments of language models by the routes of servers, and reads no file of a request."""

from __future__ import annotations

import json

import pytest
from deployment_project import CONFIG, KNOWN, champion
from serving_project import request, served


@pytest.fixture(scope="module")
def server():
    with served(champion()) as address:
        yield address


def test_predictions_have_derived_quantities(server):
    reply = request(f"{server}/predict", KNOWN)
    assert reply.status == 200, reply.body
    (machine,) = reply.json()["machines"]
    assert {each["task"] for each in machine["estimates"]} == {"ttft", "tpot"} and len(machine["derived"]) == 3
    assert machine["machine"].startswith("4 x H200, Llama-3.1-70B")


def test_imputed_values_have_the_origins_of_the_dataset(server):
    (machine,) = request(f"{server}/predict", KNOWN).json()["machines"]
    origins = {each["column"]: each["origin"] for each in machine["values"]}
    assert origins["layers"] == "looked up" and origins["gpus"] == "implied"
    health = request(f"{server}/health").json()
    assert "GPU" in health["origins"]["looked up"]
    assert health["form"][:2] == ["gpu", "model"] and health["named_field"] == "gpu"


def test_names_and_fields_are_offered(server):
    assert "H200" in request(f"{server}/cpu-models?q=h2").json()["cpu_models"]
    fields = {each["name"]: each for each in request(f"{server}/fields").json()["fields"]}
    assert fields["batch"]["number"] and fields["gpu"]["example"] == "H200"


def test_decisions(server):
    machines = [{**KNOWN, "gpu": gpu, "price": 2} for gpu in ("H100", "H200")]
    body = {"machines": machines, "targets": ["tpot <= 50"], "by": "tokens_per_second/price"}
    ranking = request(f"{server}/rank", body).json()
    assert [each["price"] for each in ranking["candidates"]] == [8, 8] and ranking["targets"] == ["tpot <= 50"]
    grid = request(f"{server}/what-if", {"machine": KNOWN, "vary": ["batch=1,8", "input=100,200"]}).json()
    assert len(grid["combinations"]) == 4 and grid["combinations"][0]["derived"]
    similar = request(f"{server}/similar", {"machines": [KNOWN], "count": 2}).json()
    assert len(similar["machines"][0]["similar"]) == 4
    pairs = request(f"{server}/compare", {"machines": [KNOWN, {**KNOWN, "gpu": "H100"}]}).json()["pairs"]
    assert {pair["task"] for pair in pairs} == {"ttft", "tpot"}


def test_no_file_of_the_server_is_read(server, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    for route, body in {
        "predict": {**KNOWN, "model": str(path)},
        "rank": {"machines": [{**KNOWN, "model": str(path)}, KNOWN]},
        "what-if": {"machine": KNOWN, "vary": [f"model={path}"]},
        "similar": {"machines": [{**KNOWN, "model": str(path)}]},
    }.items():
        reply = request(f"{server}/{route}", body)
        assert b"(config.json)" not in reply.body
        message = reply.error if route != "rank" else reply.json()["refused"][0]["message"]
        assert "model must be a known model" in message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gpu": "foo"}, "gpu must be a known GPU"),
        ({"gpu": None}, "gpu must be a known GPU, but machine 1 names none"),
        ({"gpu": ["H200"]}, "gpu must be one value"),
        ({"model": {"name": "x"}}, "model.name"),
        ({"batch": "1e400"}, "batch must be a number"),
        ({"batch": True}, "batch must be a number"),
        ({"processor": "EPYC 9654"}, "known names"),
        ({"precision": "fp8\u202e"}, "text that can be printed"),
    ],
)
def test_hostile_values_are_one_line(server, changed, message):
    reply = request(f"{server}/predict", {**KNOWN, **changed})
    assert reply.status == 422 and message in reply.error
