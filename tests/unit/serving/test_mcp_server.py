"""Tools of the Model Context Protocol, asked with the client of its SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from bridged_project import bridged_pair
from champion_project import project
from serving_project import request, served

import perfcast

pytest.importorskip("mcp")

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from perfcast.inference.suites import Suites
from perfcast.serving.mcp_server import TOOLS, create_server
from perfcast.serving.request_limits import RequestLimits

MACHINE = {"processor": "2 x Xeon Gold 6148"}
OTHER = {"processor": "Xeon Gold 6148", "chips": 1}
REQUESTS: dict[str, dict[str, Any]] = {
    "predict": {"machines": [MACHINE]},
    "published": {"machine": MACHINE},
    "compare": {"machines": [MACHINE, OTHER]},
    "rank": {"machines": [MACHINE, OTHER], "by": "score"},
    "size": {"fleet": [{**OTHER, "count": 10}], "onto": [MACHINE], "mix": {"int_rate": 1.0}},
    "match": {"machine": OTHER, "among": [MACHINE], "mix": "int_rate"},
    "similar": {"machines": [MACHINE], "count": 2},
}


def ask(question: Callable[[Client], Any], server: Any = None) -> Any:
    async def run() -> Any:
        async with Client(server or create_server(Suites(project().champion))) as client:
            return await question(client)

    return anyio.run(run)


def call(name: str, arguments: dict[str, Any], server: Any = None) -> Any:
    return ask(lambda client: client.call_tool(name, arguments), server)


def test_tools_have_schemas_and_only_read():
    tools = ask(lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == [*TOOLS] == [*REQUESTS]
    for tool in tools:
        assert tool.annotations.read_only_hint
        assert tool.input_schema["properties"]
        assert tool.output_schema["type"] == "object"
        assert "estimates" in tool.description


@pytest.mark.parametrize("name", REQUESTS)
def test_every_tool_answers_as_python_does(name):
    answered = call(name, REQUESTS[name])  # the client checks it against the schema
    assert not answered.is_error, answered.content
    champion = perfcast.load_champion(project().folder)
    expected = getattr(champion, name)(**REQUESTS[name])
    expected = {task: asdict(each) for task, each in expected.items()} if name == "published" else expected.to_dict()
    assert answered.structured_content == json.loads(json.dumps(expected))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nothing", {}),
        ("predict", {}),
        ("predict", {"machines": []}),
        ("predict", {"machines": [MACHINE], "more": 1}),
        ("predict", {"machines": [{"processor": "Xeon Gibberish"}]}),
        ("size", {"fleet": [OTHER], "onto": [MACHINE], "mix": "int_rate:0.5"}),
        ("size", {"fleet": [OTHER], "onto": [MACHINE], "sure": 7}),
    ],
)
def test_request_that_cannot_be_answered_gets_one_line(name, arguments):
    answered = call(name, arguments)
    assert answered.is_error
    (content,) = answered.content
    assert content.text and "\n" not in content.text


@pytest.fixture(scope="module")
def address():
    with served(bridged_pair()) as url:
        yield url


@pytest.mark.parametrize("suite", [None, "both", "2017", "2026"])
@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "published"])
def test_every_tool_answers_in_every_suite_as_http_does(address, name, suite):
    route = "predict-measured" if name == "predict" else name
    body = REQUESTS[name] | ({} if suite is None else {"suite": suite})
    body |= {"mix": {}} if name == "size" else {}
    answered, reply = call(name, body, create_server(bridged_pair())), request(f"{address}/{route}", body)
    assert not answered.is_error, answered.content
    assert answered.structured_content == reply.json()
    assert ("2026_int" in str(answered.content)) == (
        suite == "2026"
        or ((suite or "both") == "both" and name not in ("size", "match") and (suite is not None or name == "predict"))
    )


@pytest.mark.parametrize("name", REQUESTS)
def test_a_tool_refuses_an_unknown_suite_in_one_line(name):
    answered = call(name, {**REQUESTS[name], "suite": "1999"}, create_server(bridged_pair()))
    assert answered.is_error
    assert answered.content[0].text.startswith("suite must be both or the end of a dataset")
    assert "\n" not in answered.content[0].text


def test_published_results_are_of_the_asked_suite():
    server = create_server(bridged_pair())
    tasks = {
        suite: [*call("published", {**REQUESTS["published"], "suite": suite}, server).structured_content]
        for suite in ("2017", "2026", "both")
    }
    assert tasks["2017"] and tasks["2026"]
    assert tasks["both"] == tasks["2026"] + tasks["2017"]


def test_sizes_are_bounded():
    small = create_server(Suites(project().champion), RequestLimits(machines=1))
    assert call("compare", REQUESTS["compare"], small).is_error
    small = create_server(Suites(project().champion), RequestLimits(body=20))
    assert "bytes" in call("compare", REQUESTS["compare"], small).content[0].text


INITIALIZE = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
MALFORMED = {
    b"{": -32700,
    b"\xff\xfe": -32700,
    b'{"jsonrpc": "2.0", "id": 7, "method": "\\ud800"}': -32700,
    b"[]": -32600,
    b"3": -32600,
    b'{"id": 1, "method": "ping"}': -32600,
    b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * (3 << 20): -32700,
}


def test_malformed_lines_get_an_error_and_every_request_an_answer_before_the_end():
    calls = [{"method": "tools/call", "params": {"name": "similar", "arguments": REQUESTS["similar"]}}] * 3
    messages = [INITIALIZE, *calls]
    numbered = [{"jsonrpc": "2.0", "id": number, **each} for number, each in enumerate(messages, start=100)]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    lines = [json.dumps(each).encode() for each in (numbered[0], ready, *numbered[1:])]
    lines[-1] = lines[-1].replace(b'"count": 2', b'"count": NaN')
    done = subprocess.run(
        [sys.executable, "-m", "perfcast", "mcp", "--results", str(project().results)],
        input=b"\n".join([lines[0], *MALFORMED, *lines[1:], b""]),
        capture_output=True,
        timeout=300,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [each["error"]["code"] for each in answers if each["id"] is None]
    assert errors == list(MALFORMED.values())
    results = {each["id"]: each["result"] for each in answers if "result" in each}
    assert sorted(results) == [100, 101, 102, 103]
    assert [results[number]["isError"] for number in (101, 102, 103)] == [False, False, True]
    assert "finite" in results[103]["content"][0]["text"]


def test_command_serves_on_standard_input_and_output():
    command = ["-m", "perfcast", "mcp", "--results", str(project().results)]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    answered = call("size", REQUESTS["size"], stdio_client(parameters))
    assert not answered.is_error
    assert answered.structured_content["machines"] == 10
