"""A measured throughput is a measurement of the latency that its formula tells."""

from __future__ import annotations

import numpy as np
import pytest
from deployment_project import KNOWN, champion, results
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_project import request, served

from perfcast.cli.main import main
from perfcast.domains.llm.deployment_fields import DERIVED_OUTPUTS
from perfcast.inference import MachineEntry, PredictOptions
from perfcast.inference.predict import predict_batch
from perfcast.inference.user_measurements import read_measurements
from perfcast.utils.errors import UserError

PLAIN = PredictOptions(neighbors=0, explain=False)
NAMES = {name: output for output in DERIVED_OUTPUTS for name in (output.name, *output.aliases)}


def read(*measured, machine=KNOWN):
    return read_measurements(
        [MachineEntry(line, f"line {line}", each) for line, each in enumerate(measured)], champion(), machine
    )


def predict(measurements=None):
    (machine,) = predict_batch([MachineEntry(1, "it", KNOWN)], champion(), PLAIN, measurements)
    return machine


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(NAMES)), st.floats(0.3, 3.0), st.booleans())
def test_a_throughput_is_the_time_per_token_that_gives_it(name, factor, as_column):
    medians = {each.task: each.median for each in predict().estimates}
    cells = {"output_tokens": 256.0, "concurrency": 32.0, "gpus": 4.0}
    value = NAMES[name].compute({**medians, "tpot": factor * medians["tpot"]}, cells)
    measured = {name: value} if as_column else {"quantity": name, "latency": value}
    assert read(measured).residuals == pytest.approx([np.log(factor)], abs=1e-6)
    assert read(measured).outputs.tolist() == ["tpot\x1flatency"]


def test_a_low_throughput_makes_the_deployment_slower():
    before = predict()
    measured = {each.name: each.median / 1.4 for each in before.derived}
    after = predict(read({"tokens_per_second": measured["tokens_per_second"]}))
    by_task = {each.task: each.user_factor for each in after.estimates}
    assert by_task["tpot"] > 1
    assert after.derived[0].median < before.derived[0].median


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (
            {"tokens_per_second": "fast"},
            "must be a number above 0 without a unit, but line 0 has 'fast'",
        ),
        ({"quantity": "throughput", "score": "-4"}, "throughput must be a number above 0"),
        ({"tokens_per_second": 1e9}, "tokens_per_second must be below"),
        ({"tokens_per_second": 900, "quantity": "tpot", "latency": 9}, "must be the only result of its line"),
        ({"tokens_per_second": 900, "tokens/s/gpu": 200}, "must be the only result of its line"),
        ({"quantity": "throughput"}, "must have a score"),
    ],
)
def test_a_value_that_no_latency_explains_is_refused_in_one_line(measured, message):
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
