"""The server answers for deployments by the routes of servers; a measured throughput is a measured latency."""

import json

import numpy as np
import pytest
from deployment_project import CONFIG, KNOWN, champion, results
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_project import request, served

from perfcast.cli.main import main
from perfcast.domains.llm.deployment_fields import DERIVED_OUTPUTS
from perfcast.inference import MachineEntry, PredictOptions
from perfcast.inference.predict import predict_batch
from perfcast.inference.user_measurements import read_measurements
from perfcast.utils.errors import UserError


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
    (machine,) = request(f"{server}/impute", KNOWN).json()["machines"]
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


def test_hostile_values_are_one_line(server):
    for changed, message in (
        ({"gpu": None}, "gpu must be a known GPU, but machine 1 names none"),
        ({"gpu": ["H200"]}, "gpu must be one value"),
        ({"model": {"name": "x"}}, "model.name"),
        ({"processor": "EPYC 9654"}, "known names"),
    ):
        reply = request(f"{server}/predict", {**KNOWN, **changed})
        assert reply.status == 422 and message in reply.error


PLAIN = PredictOptions(neighbors=0, explain=False)
NAMES = {name: output for output in DERIVED_OUTPUTS for name in (output.name, *output.aliases)}


def read(*measured):
    entries = [MachineEntry(line, f"line {line}", each) for line, each in enumerate(measured)]
    return read_measurements(entries, champion(), KNOWN)


def predict(measurements=None):
    (machine,) = predict_batch([MachineEntry(1, "it", KNOWN)], champion(), PLAIN, measurements)
    return machine


@pytest.fixture(scope="module")
def before():
    return predict()


@settings(max_examples=8)
@given(st.sampled_from(sorted(NAMES)), st.floats(0.3, 3.0), st.booleans())
def test_a_throughput_is_the_time_per_token_that_gives_it(before, name, factor, as_column):
    medians = {each.task: each.median for each in before.estimates}
    cells = {"output_tokens": 256.0, "concurrency": 32.0, "gpus": 4.0}
    value = NAMES[name].compute({**medians, "tpot": factor * medians["tpot"]}, cells)
    measurements = read({name: value} if as_column else {"quantity": name, "latency": value})
    assert measurements.residuals == pytest.approx([np.log(factor)], abs=1e-6)
    assert measurements.outputs.tolist() == ["tpot\x1flatency"]


def test_a_low_throughput_makes_the_deployment_slower(before):
    measured = {each.name: each.median / 1.4 for each in before.derived}["tokens_per_second"]
    after = predict(read({"tokens_per_second": measured}))
    assert {each.task: each.user_factor for each in after.estimates}["tpot"] > 1
    assert after.derived[0].median < before.derived[0].median


def test_a_value_that_no_latency_explains_is_refused_in_one_line():
    for measured, message in (
        ({"tokens_per_second": "fast"}, "must be a number above 0 without a unit, but line 0 has 'fast'"),
        ({"quantity": "throughput", "score": "-4"}, "throughput must be a number above 0"),
        ({"tokens_per_second": 1e9}, "tokens_per_second must be below"),
        ({"tokens_per_second": 900, "quantity": "tpot", "latency": 9}, "must be the only result of its line"),
        ({"tokens_per_second": 900, "tokens/s/gpu": 200}, "must be the only result of its line"),
        ({"quantity": "throughput"}, "must have a score"),
    ):
        with pytest.raises(UserError) as refused:
            read(measured)
        assert message in str(refused.value) and "\n" not in str(refused.value)


def test_files_and_requests_take_a_throughput(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    path.write_text("tokens_per_second\n300\n")
    flags = [word for name, value in KNOWN.items() if name != "tensor-parallel" for word in (f"--{name}", str(value))]
    command = ["predict", "--dataset", "llm_serving", "--results", str(results()), *flags, "--set", "tensor-parallel=4"]
    assert main([*command, "--measured", str(path)]) == 0
    assert "changed by your own measurements: " in capsys.readouterr().out
    with served(champion()) as address:
        body = {"machines": [KNOWN], "measured": [{"quantity": "tokens/s", "score": 300}]}
        reply = request(f"{address}/predict-measured", body)
        assert reply.status == 200, reply.body
        (machine,) = reply.json()["machines"]
    assert {each["task"]: each["user_factor"] for each in machine["estimates"]} == {
        each.task: each.user_factor for each in predict(read({"tokens_per_second": 300})).estimates
    }
