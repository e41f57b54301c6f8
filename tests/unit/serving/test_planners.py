"""Questions of planners have one answer, with equal digits, in Python, at the command, by HTTP and for an assistant."""

from __future__ import annotations

import json

import anyio
import pytest
from champion_project import project
from mcp import Client
from serving_project import request, served

import perfcast
from perfcast.cli.main import main
from perfcast.inference.suites import Suites
from perfcast.serving.mcp_server import create_server


def ask_assistant(name, arguments):
    async def run():
        async with Client(create_server(Suites(project().champion))) as client:
            return await client.call_tool(name, arguments)

    return anyio.run(run).structured_content


OLD = {"processor": "Xeon Gold 6148", "chips": 1, "memory": "192 GB"}
NEW = {"processor": "EPYC 7742", "chips": 2, "memory": "1 TB", "disk": "8 TB", "network": "50 Gbit/s"}
SMALL = {"processor": "Xeon Gold 6148", "chips": 2, "memory": "256 GB"}
MIX = {"mix": "int_rate"}
PLANNED = {
    "what runs out first": ("size", {"fleet": [{**OLD, "count": 400}], "onto": [NEW, SMALL], **MIX}),
    "disks and network": (
        "size",
        {"fleet": [{**OLD, "count": 90, "disk": "4 TB", "network": 25}], "onto": [NEW], **MIX},
    ),
    "headroom, growth and spares": (
        "size",
        {"fleet": [{**OLD, "count": 90}], "onto": [SMALL], **MIX}
        | {"headroom": 0.3, "growth": 0.1, "years": 3.0, "spare": 2, "sure": 0.95},
    ),
    "one machine by a smaller one": ("match", {"machine": OLD, "among": [NEW, SMALL], **MIX}),
    "one machine, nearly surely": ("match", {"machine": OLD, "among": [SMALL, NEW], "sure": 0.99, "headroom": 0.1}),
}
"""Questions of planners, as an operation with its arguments."""


@pytest.mark.parametrize("question", PLANNED)
def test_planners_have_one_answer_at_every_door(question, tmp_path, capsys):
    operation, arguments = PLANNED[question]
    champion = perfcast.load_champion(project().folder)
    listed = {name: value for name, value in arguments.items() if name in ("fleet", "onto", "machine", "among")}
    others = {name: value for name, value in arguments.items() if name not in listed}
    answer = getattr(champion, operation)(**listed, **others).to_dict()
    expected = json.loads(json.dumps(answer["targets"]))
    words = [word for name, value in others.items() for word in (f"--{name}", str(value))]
    files = {name: tmp_path / f"{name}.json" for name in listed}
    for name, machines in listed.items():
        files[name].write_text(json.dumps(machines))
    first, second = files
    command = [operation, str(files[first]), f"--{second}", str(files[second]), *words, "--json"]
    assert main([*command, "--results", str(project().results)]) == 0
    answers = {"command": json.loads(capsys.readouterr().out)}
    with served(Suites(project().champion)) as url:
        answers["HTTP"] = request(f"{url}/{operation}", arguments).json()
    answers["MCP"] = ask_assistant(operation, arguments)
    for door, answer in answers.items():
        assert answer["targets"] == expected, door
