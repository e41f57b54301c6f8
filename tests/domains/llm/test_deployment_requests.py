"""The server answers for deployments of language models by the routes of servers, and reads no file of a request."""

import json

import pytest
from deployment_project import CONFIG, KNOWN, champion
from serving_project import request, served


@pytest.fixture(scope="module")
def server():
    with served(champion()) as address:
        yield address


def test_predictions_and_imputed_values_are_those_of_the_dataset(server):
    reply = request(f"{server}/predict", KNOWN)
    assert reply.status == 200, reply.body
    (machine,) = reply.json()["machines"]
    assert {each["task"] for each in machine["estimates"]} == {"ttft", "tpot"} and len(machine["derived"]) == 3
    assert machine["machine"].startswith("4 x H200, Llama-3.1-70B")
    origins = {each["column"]: each["origin"] for each in machine["values"]}
    assert (origins["layers"], origins["gpus"]) == ("looked up", "implied")
    health = request(f"{server}/health").json()
    assert "GPU" in health["origins"]["looked up"]
    assert health["form"][:2] == ["gpu", "model"] and health["named_field"] == "gpu"
    assert "H200" in request(f"{server}/cpu-models?q=h2").json()["cpu_models"]
    fields = {each["name"]: each for each in request(f"{server}/fields").json()["fields"]}
    assert fields["batch"]["number"] and fields["gpu"]["example"] == "H200"


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
