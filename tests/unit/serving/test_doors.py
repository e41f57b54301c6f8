"""One machine has one answer, whichever door and however many suites are asked."""

from __future__ import annotations

import json

import pytest
from bridged_project import DATASET, LATER, bridged_pair, bridged_results
from champion_project import TITLES, project
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving_project import request, served

import perfcast
from perfcast.cli.main import main
from perfcast.inference.machine_files import read_machines
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import predict_machines

# CPU models with results of both suites, of one, and what is typed of the memory
MODELS = sorted(project().standard.frame["cpu_model"].dropna().unique())
NUMBERS = ("median", "low", "high")


@pytest.fixture(scope="module")
def address():
    with served(bridged_pair()) as url:
        yield url


def read(machine):
    return {each["task"]: [each[name] for name in NUMBERS] for each in machine["estimates"]}


def run(capsys, *words):
    assert main([*words, "--results", str(bridged_results()), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("suite", ["2017", "2026", "both"])
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=st.sampled_from(MODELS), memory=st.sampled_from(["", "memory=8 x 64 GB"]))
def test_one_machine_has_one_answer_at_every_door(request_doors, suite, model, memory):
    expected, answers = request_doors(suite, model, memory)
    for door, answer in answers.items():
        assert answer.keys() == expected.keys(), door
        for task, numbers in expected.items():
            assert answer[task] == pytest.approx(numbers, rel=1e-9), (door, task)


@pytest.fixture
def request_doors(address, capsys, tmp_path):
    """Return a function that asks all doors for the estimates of a machine in a suite, by door."""
    dataset = {"2017": "spec_cpu2017", "2026": DATASET, "both": DATASET}
    titles = {"2017": TITLES, "2026": LATER, "both": LATER + TITLES}

    def ask(suite, model, memory):
        machine = {"processor": model, "chips": 1} | dict(text.split("=") for text in filter(None, [memory]))
        flags = [word for name, value in machine.items() for word in (f"--{name}", str(value))]
        text = "; ".join([model, *(f"{name}={value}" for name, value in machine.items() if name != "processor")])
        options = PredictOptions(neighbors=0, explain=False)
        [pair] = predict_machines(read_machines(machine), bridged_pair(), options).machines
        made = {each.task: [each.median, each.low, each.high] for each in pair.estimates}
        expected = {task: made[task] for task in titles[suite] if task in made}
        champion = perfcast.load_champion(bridged_results() / "champion" / dataset[suite])
        both = {"suite": "both"} if suite == "both" else {}
        python = champion.predict(machine, explain=False, **both).to_dict()
        compared = run(capsys, "compare", text, text, "--suite", suite)
        varied = run(capsys, "what-if", *flags[:2], *flags[4:], "--vary", "chips=1", "--suite", suite)
        body = {"machines": [machine, machine], "suite": suite}
        answers = {
            "predict": read(run(capsys, "predict", *flags, "--suite", suite)["machines"][0]),
            "python": read(python["machines"][0]),
            "compare": read(compared["machines"][0]),
            "what-if": read(varied["combinations"][0]),
            "HTTP": read(request(f"{address}/predict?suite={suite}&explain=false", machine).json()["machines"][0]),
            "HTTP compare": read(request(f"{address}/compare", body).json()["machines"][0]),
        }
        if suite != "both":
            path = tmp_path / "one.json"
            path.write_text(json.dumps([machine]))
            answers["rank"] = {}
            for task in expected:
                ranking = run(capsys, "rank", str(path), "--by", task, "--suite", suite)["candidates"][0]
                answers["rank"][task] = [ranking["score"], ranking["score_low"], ranking["score_high"]]
        return expected, answers

    return ask
