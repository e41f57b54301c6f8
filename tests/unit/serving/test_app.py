"""Routes, limits and metrics of the server, and the command that starts it."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit

import pandas as pd
import pytest
from champion_project import TITLES, project
from serving_project import JSON, KNOWN, PLAIN, WRONG, request, served

import perfcast
from perfcast.cli.main import main
from perfcast.predictors.linear import Ridge
from perfcast.serving import api_models as response_models
from perfcast.serving.request_limits import DEFAULT_LIMITS


@pytest.fixture(scope="module")
def server():
    # slow test machines must not run into the time limit
    with served(project().champion, replace(DEFAULT_LIMITS, seconds=120.0)) as address:
        yield address


# Routes


def test_prediction_equals_library_prediction(server):
    payload = request(f"{server}/predict?when=2026-03&level=0.5", KNOWN)
    expected = perfcast.predict(KNOWN, project().champion, level=0.5, when=pd.Timestamp("2026-03-01")).to_dict()
    assert payload.status == 200
    assert payload.json() == json.loads(json.dumps(expected))
    response_models.PredictResponse.model_validate(payload.json(), extra="forbid")
    assert payload.json()["kind"] == "estimates, not official results"
    assert [estimate["task"] for estimate in payload.json()["machines"][0]["estimates"]] == TITLES


def test_several_machines_keep_their_order_and_equal_ones_get_equal_results(server):
    other = {"processor": "Xeon Gold 6148", "chips": 1}
    for body in ([KNOWN, other, KNOWN], {"machines": [KNOWN, other, KNOWN]}):
        machines = request(f"{server}/predict{PLAIN}", body).json()["machines"]
        assert [machine["line"] for machine in machines] == [1, 2, 3]
        assert machines[0]["estimates"] == machines[2]["estimates"] != machines[1]["estimates"]
    alone = request(f"{server}/predict{PLAIN}", other).json()["machines"][0]
    assert [pytest.approx(estimate["median"]) for estimate in alone["estimates"]] == [
        estimate["median"] for estimate in machines[1]["estimates"]
    ]


def test_notes_belong_to_their_machine(server):
    machines = request(f"{server}/predict{PLAIN}", [KNOWN, {**KNOWN, "processor": "xeon gold6148"}]).json()["machines"]
    assert machines[0]["notes"] == []
    assert "was read as 'xeon gold 6148'" in machines[1]["notes"][0]
    assert machines[0]["estimates"] == machines[1]["estimates"]


def test_query_options_have_an_effect(server):
    payload = request(f"{server}/predict?neighbors=1&explain=true", KNOWN).json()["machines"][0]
    assert {len(estimate["neighbors"]) for estimate in payload["estimates"]} == {1}
    assert payload["values"]
    assert all(estimate["typical_machine"] for estimate in payload["estimates"])
    plain = request(f"{server}/predict{PLAIN}", KNOWN).json()["machines"][0]
    assert plain["values"] == [] == plain["estimates"][0]["neighbors"] == plain["estimates"][0]["drivers"]
    bare = request(f"{server}/predict?assume=false", KNOWN).json()["machines"][0]
    assert "assumed" not in {value["origin"] for value in bare["values"]}


def test_cpu_models_returns_matching_names(server):
    offered = request(f"{server}/cpu-models?q=xeon+gold+61").json()["cpu_models"]
    assert "xeon gold 6148" in offered
    assert 0 < len(offered) <= DEFAULT_LIMITS.suggestions
    assert request(f"{server}/cpu-models?q=gold6148").json()["cpu_models"] == ["xeon gold 6148"]
    assert request(f"{server}/cpu-models?q=%00%ff" + "x" * 5000).json()["cpu_models"] == []
    assert len(request(f"{server}/cpu-models").json()["cpu_models"]) == DEFAULT_LIMITS.suggestions


def test_fields_lists_fields_and_columns(server):
    payload = request(f"{server}/fields").json()
    response_models.FieldsResponse.model_validate(payload, extra="forbid")
    groups = {column["name"]: column["group"] for column in payload["columns"]}
    assert groups["test_month"] == "dates"
    assert "provenance" not in set(groups.values())
    fields = {field["name"]: field for field in payload["fields"]}
    assert fields["tdp"] == {
        "name": "tdp",
        "meaning": "thermal design power of each processor",
        "example": "360 W",
        "number": True,
        "unit": "W",
        "columns": ["tdp_w"],
        "capacity": None,
        "aliases": [],
    }
    assert "cpu" in fields["processor"]["aliases"]
    columns = {column["name"]: column for column in payload["columns"]}
    assert columns["chips"]["low"] == 1
    capacities = {name: fields[name]["capacity"] for name in ("sockets", "cores", "memory.channels")}
    assert capacities == {
        "sockets": "max_sockets",
        "cores": "cores_per_chip_of_cpu_model",
        "memory.channels": "mem_channels_per_chip",
    }
    assert set(filter(None, (column["capacity"] for column in columns.values()))) <= set(columns)
    # every example can be parsed
    for field in fields.values():
        machine = {"processor": "Xeon Gold 6148", field["name"]: field["example"]}
        reply = request(f"{server}/predict?explain=false&neighbors=0", [machine, KNOWN]).json()["machines"][0]
        assert reply["status"] == "ok" or "processor" in reply["message"] or "(machine 1)" in reply["message"]


def test_health_returns_predictor_and_limits(server):
    payload = request(f"{server}/health").json()
    response_models.HealthResponse.model_validate(payload, extra="forbid")
    assert (payload["status"], payload["dataset"], payload["champion"]) == ("ok", "spec_cpu2017", "ridge")
    assert payload["tasks"] == TITLES
    assert payload["limits"]["body"] == 1 << 20


def test_metrics_count_requests_machines_and_times(server):
    def metrics():
        text = request(f"{server}/metrics").body.decode()
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    request(f"{server}/predict{PLAIN}", KNOWN)
    before = metrics()
    request(f"{server}/predict{PLAIN}", {**KNOWN, "tdp": 151})
    request(f"{server}/predict{PLAIN}", WRONG)
    request(f"{server}/nowhere")
    after = metrics()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown['perfcast_requests_total{route="/predict",status="200"}'] == 1
    assert grown['perfcast_requests_total{route="/predict",status="422"}'] == 1
    assert grown['perfcast_requests_total{route="other",status="404"}'] == 1
    assert grown['perfcast_request_seconds_count{route="/predict"}'] == 2
    assert grown["perfcast_machines_total"] == 2
    assert after['perfcast_request_seconds_bucket{le="+Inf",route="/predict"}'] == sum(
        value for name, value in after.items() if name.startswith('perfcast_requests_total{route="/predict"')
    )


def test_openapi_lists_every_route_with_existing_models(server):
    payload = request(f"{server}/openapi.json").json()
    assert set(payload["paths"]) == {"/health", "/metrics", "/fields", "/cpu-models", "/predict"} | {
        *("/compare", "/rank", "/similar", "/what-if", "/predict-measured")
    }
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(payload)))
    assert (
        {"MachineRequest", "PredictRequest", "PredictResponse", "ErrorResponse"}
        <= names
        <= set(payload["components"]["schemas"])
    )
    options = {parameter["name"] for parameter in payload["paths"]["/predict"]["post"]["parameters"]}
    assert options == {"level", "when", "assume", "neighbors", "explain", "strict"}


def test_pages_load_nothing_from_elsewhere(server):
    for path in ("/", "/docs"):
        page = request(server + path)
        assert page.status == 200
        text = page.body.decode()
        loaded = re.findall(r'(?:src|href)="([^"]+)"', text)
        assert loaded
        assert all(address.startswith(("/", "#")) for address in loaded)
        for address in loaded:
            if address.startswith("/"):
                assert request(server + address).status == 200
        assert not re.search(r"<style|style=|\son\w+=|<script>", text), (
            "the security policy forbids inline scripts and styles"
        )


def test_every_response_has_security_headers(server):
    for reply in (
        request(server),
        request(f"{server}/health"),
        request(f"{server}/no"),
        request(f"{server}/predict", []),
    ):
        headers = {name.lower(): value for name, value in reply.headers.items()}
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers or "uvicorn" in headers["server"]


# Bounds


@pytest.mark.reliability("HTTP bodies and headers sent slowly or never, or without end")
def test_body_of_ten_megabytes_is_refused_with_and_without_length(server):
    large = b'{"processor": "' + b"x" * 10_000_000 + b'"}'
    announced = request(f"{server}/predict", large)
    assert (announced.status, "at most 1048576 bytes" in announced.error) == (413, True)
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=60)
    pieces = (large[start : start + 65536] for start in range(0, len(large), 65536))
    connection.request("POST", "/predict", pieces, JSON, encode_chunked=True)
    reply = connection.getresponse()
    assert reply.status == 413
    assert "at most 1048576 bytes" in json.loads(reply.read())["error"]


def test_batch_size_is_limited(server):
    reply = request(f"{server}/predict", [KNOWN] * 1001)
    assert (reply.status, "at most 1000 machines" in reply.error, "has 1001" in reply.error) == (413, True, True)


def test_unknown_host_header_is_refused(server):
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "127.0.0.1:99999", "[::1]:x", ""):
        reply = request(f"{server}/health", headers={"Host": host})
        assert reply.status == 400
        assert reply.error.startswith("the Host header must name this server")
    assert request(f"{server}/health", headers={"Host": "localhost:1"}).status == 200
    with served(project().champion, hosts=None) as open_to_all:
        assert request(f"{open_to_all}/health", headers={"Host": "evil.example"}).status == 200


class _Slow(Ridge):
    """Predictor that waits for a gate."""

    def __init__(self, known, gate):
        self.__dict__.update(known.__dict__)
        self._gate = gate

    def predict(self, X):
        self._gate.wait(30)
        return super().predict(X)


class _Broken(_Slow):
    def predict(self, X):
        raise ZeroDivisionError("internal detail")


def test_slow_prediction_gets_status_503_and_the_next_request_succeeds():
    gate = threading.Event()
    champion = project().champion
    slow = replace(champion, predictor=_Slow(champion.predictor, gate))
    with served(slow, replace(DEFAULT_LIMITS, seconds=1.0, waiting=2)) as address:
        with ThreadPoolExecutor(3) as pool:
            requests = [
                pool.submit(request, f"{address}/predict{PLAIN}", {**KNOWN, "tdp": 150 + number}) for number in range(3)
            ]
            replies = sorted(reply.result().error for reply in requests)
        assert sum("the server is busy" in error for error in replies) == 1
        assert sum("must end within 1 s, but this one took longer" in error for error in replies) == 2
        assert {reply.result().status for reply in requests} == {503}
        assert {reply.result().headers["retry-after"] for reply in requests} == {"1"}
        assert request(f"{address}/health").status == 200
        gate.set()
        until = time.monotonic() + 20
        while (reply := request(f"{address}/predict{PLAIN}", KNOWN)).status == 503 and time.monotonic() < until:
            time.sleep(0.1)
        assert reply.status == 200


@pytest.mark.reliability("HTTP bodies and headers sent slowly or never, or without end")
def test_slow_body_gets_status_408():
    with served(project().champion, replace(DEFAULT_LIMITS, seconds=0.5)) as address:
        address_parts = urlsplit(address)
        with socket.create_connection((address_parts.hostname, address_parts.port), timeout=20) as half:
            half.sendall(
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
            )
            assert half.recv(4096).startswith(b"HTTP/1.1 408")


def test_unexpected_error_is_logged_and_hidden_from_the_client(capfd):
    champion = project().champion
    broken = replace(champion, predictor=_Broken(champion.predictor, None))
    with served(broken) as address:
        reply = request(f"{address}/predict{PLAIN}", KNOWN)
        assert (reply.status, reply.error) == (500, "the prediction failed unexpectedly; see the server log")
        assert "default-src" in reply.headers["content-security-policy"]
        assert request(f"{address}/health").status == 200
        assert request(f"{address}/predict{PLAIN}", {"processor": "Zeus 1"}).status == 422
    assert "ZeroDivisionError: internal detail" in capfd.readouterr().err


# Many at once


@pytest.mark.reliability("many HTTP requests at once")
def test_concurrent_requests_get_the_same_results_as_single_ones(server):
    machines = [{**KNOWN, "tdp": 100 + number, "chips": 1 + number % 2} for number in range(24)]
    machines[5], machines[11] = WRONG, {"processor": "Zeus 1"}
    address = f"{server}/predict?explain=false&neighbors=2"
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda machine: request(address, machine), machines))
    errors = {number: reply.error for number, reply in enumerate(replies) if reply.status != 200}
    assert list(errors) == [5, 11], errors
    assert "(machine 1)" in errors[5]
    options = {"explain": False, "neighbors": 2, "when": pd.Timestamp.now().normalize()}
    for machine, reply in zip(machines, replies, strict=True):
        if reply.status == 200:
            alone = perfcast.predict(machine, project().champion, **options).to_dict()["machines"][0]
            payload = reply.json()["machines"][0]
            assert payload["line"] == 1
            for estimate, other in zip(payload["estimates"], alone["estimates"], strict=True):
                near, known = estimate.pop("neighbors"), other.pop("neighbors")
                assert [neighbor["result"] for neighbor in near] == [neighbor["result"] for neighbor in known]
                assert [estimate[name] for name in ("median", "low", "high", "in_domain_score")] == [
                    pytest.approx(other[name], rel=1e-9) for name in ("median", "low", "high", "in_domain_score")
                ]
                assert (estimate["task"], estimate["trust"]) == (
                    other["task"],
                    other["trust"],
                )


# The command


def test_command_reports_errors_in_one_line(tmp_path, capsys):
    folder = ["--champion", str(project().folder)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1]), *folder]) == 2
    assert re.fullmatch(r"perfcast serve: the server needs a free port.*\n", capsys.readouterr().err)
    for options, words in (
        (["--port", "0", "--champion", str(tmp_path)], "there must be a champion"),
        (["--port", "70000", *folder], "--port must be a whole number from 0 to 65535"),
        (["--port", "0", "--host", "no such host", *folder], "--host must be an address of this machine"),
        (["--port", "0", "--host", "192.0.2.1", *folder], "the server needs a free port"),
        (["--port", "0", "--max-batch", "0", *folder], "--max-batch must be a whole number from 1 to 10000"),
    ):
        assert main(["serve", *options]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
