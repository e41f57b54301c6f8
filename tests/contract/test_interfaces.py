"""Contract of the interfaces: command line, HTTP, Python and MLflow have the same answer for the same description."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest
from champion_project import project
from serving_project import request, served

import perfcast
from perfcast.cli.main import main

MACHINES = {
    "name alone": {"processor": "Xeon Gold 6148"},
    "name and chips": {"processor": "Xeon Gold 6148", "chips": 2},
    "memory and compiler": {"processor": "Xeon Gold 6148", "chips": 2, "memory": "12 x 32 GB DDR4-2666"},
}


@pytest.fixture(scope="module")
def server():
    with served(project().champion) as address:
        yield address


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_all_interfaces_have_the_same_answer(machine, server, capsys):
    flags = [text for name, value in machine.items() for text in (f"--{name}", str(value))]
    assert main(["predict", "--results", str(project().results), *flags, "--json"]) == 0
    by_command = json.loads(capsys.readouterr().out)
    champion = perfcast.load_champion(project().folder)
    by_python = json.loads(json.dumps(champion.predict(machine).to_dict()))
    by_http = request(f"{server}/predict", machine).json()
    assert by_command == by_http

    assert by_python == by_command


def test_mlflow_has_the_estimates_of_python(server):
    pytest.importorskip("mlflow")
    from mlflow.pyfunc import PythonModelContext

    from perfcast.tracking.pyfunc_model import LoggedModel

    model = LoggedModel()
    model.load_context(PythonModelContext({"champion": str(project().folder)}, {}))
    for machine in MACHINES.values():
        answer = model.predict(PythonModelContext({}, {}), pd.DataFrame([machine])).to_dict("records")
        expected = perfcast.predict(machine, project().folder).to_frame().to_dict("records")
        assert len(answer) == len(expected) > 0
        for row, other in zip(answer, expected, strict=True):
            for name, cell in row.items():
                same_nan = isinstance(cell, float) and math.isnan(cell) and math.isnan(other[name])
                assert cell == other[name] or same_nan, name
