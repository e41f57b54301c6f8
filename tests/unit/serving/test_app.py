"""Routes, limits and metrics of the server, and the command that starts it."""

from __future__ import annotations

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
from serving_project import KNOWN, PLAIN, WRONG, request, served

import perfcast
from perfcast.cli.main import main
from perfcast.predictors.linear import Ridge
from perfcast.serving import api_models as response_models
from perfcast.serving.request_limits import DEFAULT_LIMITS

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
    other = {"processor": "xeon gold6148", "chips": 1}
    for body in ([KNOWN, other, KNOWN], {"machines": [KNOWN, other, KNOWN]}):
        machines = request(f"{server}/predict{PLAIN}", body).json()["machines"]
        assert [machine["line"] for machine in machines] == [1, 2, 3]
        assert machines[0]["estimates"] == machines[2]["estimates"] != machines[1]["estimates"]
        read = [any("was read as 'xeon gold 6148'" in note for note in machine["notes"]) for machine in machines]
        assert read == [False, True, False]


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
    assert request(f"{server}/cpu-models?q=gold6148").json()["cpu_models"] == ["xeon gold 6148", "xeon gold 6148f"]
    assert request(f"{server}/cpu-models?q=%00%ff" + "x" * 5000).json()["cpu_models"] == []
    assert len(request(f"{server}/cpu-models").json()["cpu_models"]) == DEFAULT_LIMITS.suggestions


def test_fields_lists_fields_and_columns(server):
    payload = request(f"{server}/fields").json()
    response_models.FieldsResponse.model_validate(payload, extra="forbid")
    columns = {column["name"]: column for column in payload["columns"]}
    assert (columns["test_month"]["group"], columns["chips"]["low"]) == ("dates", 1)
    assert "provenance" not in {column["group"] for column in columns.values()}
    fields = {field["name"]: field for field in payload["fields"]}
    tdp = {"meaning": "thermal design power of each processor", "example": "360 W", "unit": "W", "columns": ["tdp_w"]}
    assert fields["tdp"] == {"name": "tdp", "label": "tdp", "number": True, "capacity": None, "aliases": [], **tdp}
    assert "cpu" in fields["processor"]["aliases"]
    capacities = {name: fields[name]["capacity"] for name in ("sockets", "cores", "memory.channels")}
    of_cores, of_channels = "cores_per_chip_of_cpu_model", "mem_channels_per_chip"
    assert capacities == {"sockets": "max_sockets", "cores": of_cores, "memory.channels": of_channels}
    assert set(filter(None, (column["capacity"] for column in columns.values()))) <= set(columns)
    # every example can be parsed
    machines = [{"processor": "Xeon Gold 6148", field["name"]: field["example"]} for field in fields.values()]
    for reply in request(f"{server}/predict{PLAIN}", machines).json()["machines"]:
        refused = ("processor" in reply["message"], f"(machine {reply['line']})" in reply["message"])
        assert reply["status"] == "ok" or any(refused), reply


def test_health_returns_predictor_and_limits(server):
    payload = request(f"{server}/health").json()
    response_models.HealthResponse.model_validate(payload, extra="forbid")
    assert (payload["status"], payload["dataset"], payload["champion"]) == ("ok", "spec_cpu2017", "ridge")
    (suite,) = payload["suites"]
    assert (suite["basis"]["tasks"], payload["limits"]["body"]) == (TITLES, 1 << 20)


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
        "/compare",
        "/rank",
        "/size",
        "/match",
        "/similar",
        "/what-if",
        "/predict-measured",
    }
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(payload)))
    assert (
        {"MachineRequest", "PredictRequest", "PredictResponse", "ErrorResponse"}
        <= names
        <= set(payload["components"]["schemas"])
    )
    options = {parameter["name"] for parameter in payload["paths"]["/predict"]["post"]["parameters"]}
    assert options == {"level", "when", "assume", "suite", "neighbors", "explain", "strict"}


def test_pages_load_nothing_from_elsewhere(server):
    for path in ("/", "/docs"):
        page = request(server + path)
        text = page.body.decode()
        loaded = re.findall(r'(?:src|href)="([^"]+)"', text)
        assert page.status == 200 and loaded
        assert all(address.startswith(("/", "#")) for address in loaded)
        assert {request(server + address).status for address in loaded if address.startswith("/")} == {200}
        assert not re.search(r"<style|style=|\son\w+=|<script>", text), "the policy forbids inline scripts and styles"


def test_every_response_has_security_headers(server):
    for path, body in (("", None), ("/health", None), ("/no", None), ("/predict", [])):
        headers = {name.lower(): value for name, value in request(server + path, body).headers.items()}
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


# Bounds


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


def test_concurrent_requests_get_the_same_results_as_single_ones(server):
    machines = [{**KNOWN, "tdp": 100 + number, "chips": 1 + number % 2} for number in range(24)]
    machines[5], machines[11] = WRONG, {"processor": "Zeus 1"}
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda machine: request(f"{server}/predict{PLAIN}", machine), machines))
    assert [number for number, reply in enumerate(replies) if reply.status != 200] == [5, 11]
    assert "(machine 1)" in replies[5].error
    answered = [number for number in range(24) if number not in (5, 11)]
    options = {"explain": False, "neighbors": 0}
    together = perfcast.predict([machines[number] for number in answered], project().champion, **options).to_dict()
    for number, expected in zip(answered, together["machines"], strict=True):
        (reply,) = replies[number].json()["machines"]
        for estimate, other in zip(reply["estimates"], expected["estimates"], strict=True):
            for name in ("median", "low", "high", "in_domain_score"):
                assert estimate[name] == pytest.approx(other[name], rel=1e-9)
            assert (estimate["task"], estimate["trust"]) == (other["task"], other["trust"])


# The command


def test_command_reports_errors_in_one_line(tmp_path, capsys):
    folder = ["--champion", str(project().folder)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1]), *folder]) == 2
    assert re.fullmatch(r"perfcast serve: the server needs a free port.*\n", capsys.readouterr().err)
    assert main(["serve", "--port", "0", "--champion", str(tmp_path)]) == 2
    assert "there must be a champion" in capsys.readouterr().err
    assert main(["serve", "--port", "0", "--host", "192.0.2.1", *folder]) == 2
    assert "the server needs a free port" in capsys.readouterr().err
