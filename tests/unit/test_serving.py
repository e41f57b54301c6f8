"""Forecasts over HTTP: every route, every bound, and bad input at every door."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit

import pandas as pd
import pytest
from forecasting_project import SUITES, project
from serving_project import JSON, KNOWN, PLAIN, WRONG, request, served

import perfcast
from perfcast.cli.main import main
from perfcast.predictors.ridge import RidgePredictor
from perfcast.serving import models
from perfcast.serving.limits import DEFAULTS
from perfcast.serving.metrics import Metrics


@pytest.fixture(scope="module")
def server():
    # slow machines must not turn answers into refusals here
    with served(project().champion, replace(DEFAULTS, seconds=120.0)) as address:
        yield address


# Routes


def test_a_forecast_is_that_of_the_library(server):
    told = request(f"{server}/forecast?when=2026-03&level=0.5", KNOWN)
    expected = perfcast.predict(KNOWN, project().champion, level=0.5, when=pd.Timestamp("2026-03-01")).to_dict()
    assert told.status == 200
    assert told.json() == json.loads(json.dumps(expected))
    models.Forecasts.model_validate(told.json(), extra="forbid")
    assert told.json()["kind"] == "estimates, not official results"
    assert [one["task"] for one in told.json()["machines"][0]["estimates"]] == SUITES


def test_several_machines_come_back_in_their_order_and_equal_ones_alike(server):
    other = {"processor": "Xeon Gold 6148", "chips": 1}
    for body in ([KNOWN, other, KNOWN], {"machines": [KNOWN, other, KNOWN]}):
        machines = request(f"{server}/forecast{PLAIN}", body).json()["machines"]
        assert [machine["line"] for machine in machines] == [1, 2, 3]
        assert machines[0]["estimates"] == machines[2]["estimates"] != machines[1]["estimates"]
    alone = request(f"{server}/forecast{PLAIN}", other).json()["machines"][0]
    assert [pytest.approx(one["median"]) for one in alone["estimates"]] == [
        one["median"] for one in machines[1]["estimates"]
    ]


def test_notes_belong_to_their_machine(server):
    machines = request(f"{server}/forecast{PLAIN}", [KNOWN, {**KNOWN, "processor": "xeon gold6148"}]).json()["machines"]
    assert machines[0]["notes"] == []
    assert "was read as 'xeon gold 6148'" in machines[1]["notes"][0]
    assert machines[0]["estimates"] == machines[1]["estimates"]


def test_options_are_heard(server):
    told = request(f"{server}/forecast?neighbours=1&explain=true", KNOWN).json()["machines"][0]
    assert {len(one["neighbours"]) for one in told["estimates"]} == {1}
    assert told["values"]
    assert all(one["typical"] for one in told["estimates"])
    plain = request(f"{server}/forecast{PLAIN}", KNOWN).json()["machines"][0]
    assert plain["values"] == [] == plain["estimates"][0]["neighbours"] == plain["estimates"][0]["drivers"]
    bare = request(f"{server}/forecast?assume=false", KNOWN).json()["machines"][0]
    assert "assumed" not in {value["origin"] for value in bare["values"]}


def test_a_description_is_completed_without_a_forecast(server):
    told = request(
        f"{server}/complete", [KNOWN, {"processor": "Zeus 1", "cores": 64, "clock": "3 GHz", "family": "Skylake-SP"}]
    )
    assert told.status == 200
    models.Completions.model_validate(told.json(), extra="forbid")
    known, new = told.json()["machines"]
    origins = {value["column"]: (value["value"], value["origin"]) for value in known["values"]}
    assert origins["chips"] == (2, "given")
    assert origins["mem_channels_per_chip"] == (6, "looked up")
    assert "no data names the processor 'Zeus 1'" in new["notes"][0]
    assert not {value["column"] for value in known["values"]} & set(known["unknown"])
    bare = request(f"{server}/complete?assume=false", KNOWN).json()["machines"][0]
    assert len(bare["unknown"]) > len(known["unknown"])


def test_names_of_parts_are_offered(server):
    offered = request(f"{server}/parts?q=xeon+gold+61").json()["parts"]
    assert "xeon gold 6148" in offered
    assert 0 < len(offered) <= DEFAULTS.candidates
    assert request(f"{server}/parts?q=gold6148").json()["parts"] == ["xeon gold 6148"]
    assert request(f"{server}/parts?q=%00%ff" + "x" * 5000).json()["parts"] == []
    assert len(request(f"{server}/parts").json()["parts"]) == DEFAULTS.candidates


def test_the_vocabulary_tells_what_can_be_said(server):
    told = request(f"{server}/vocabulary").json()
    models.Words.model_validate(told, extra="forbid")
    fields = {field["name"]: field for field in told["fields"]}
    assert fields["tdp"] == {
        "name": "tdp",
        "meaning": "thermal design power of each processor",
        "example": "360 W",
        "number": True,
        "unit": "W",
        "columns": ["tdp_w"],
        "aliases": [],
    }
    assert "cpu" in fields["processor"]["aliases"]
    columns = {column["name"]: column for column in told["columns"]}
    assert columns["chips"]["low"] == 1
    # every example can be said
    for field in fields.values():
        said = {"processor": "Xeon Gold 6148", field["name"]: field["example"]}
        error = request(f"{server}/complete?partial=true", said).json()["errors"]
        assert all("must be a known one" in one["error"] or "(machine 1)" in one["error"] for one in error)


def test_health_tells_who_answers_and_the_limits(server):
    told = request(f"{server}/health").json()
    models.Health.model_validate(told, extra="forbid")
    assert (told["status"], told["dataset"], told["champion"]) == ("ok", "spec_cpu2017", "ridge")
    assert told["tasks"] == SUITES
    assert told["limits"]["body"] == 1 << 20


def test_metrics_count_requests_forecasts_and_times(server):
    def metrics():
        text = request(f"{server}/metrics").body.decode()
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r'perfcast_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.]+', line) for line in lines)
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    request(f"{server}/forecast{PLAIN}", KNOWN)
    before = metrics()
    request(f"{server}/forecast{PLAIN}", {**KNOWN, "tdp": 151})
    request(f"{server}/forecast{PLAIN}", WRONG)
    request(f"{server}/nowhere")
    after = metrics()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown['perfcast_requests_total{route="/forecast",status="200"}'] == 1
    assert grown['perfcast_requests_total{route="/forecast",status="422"}'] == 1
    assert grown['perfcast_requests_total{route="other",status="404"}'] == 1
    assert grown['perfcast_request_seconds_count{route="/forecast"}'] == 2
    assert grown["perfcast_machines_total"] == 2
    assert after['perfcast_request_seconds_bucket{route="/forecast",le="+Inf"}'] == sum(
        value for name, value in after.items() if name.startswith('perfcast_requests_total{route="/forecast"')
    )
    assert after["perfcast_waiting"] == 0


def test_times_fall_into_cumulative_buckets():
    metrics = Metrics()
    metrics.request("/x", 200, 0.02)
    metrics.request("/x", 200, 20.0)
    text = metrics.text()
    assert 'perfcast_request_seconds_bucket{route="/x",le="0.01"} 0' in text
    assert 'perfcast_request_seconds_bucket{route="/x",le="0.025"} 1' in text
    assert 'perfcast_request_seconds_bucket{route="/x",le="10.0"} 1' in text
    assert 'perfcast_request_seconds_bucket{route="/x",le="+Inf"} 2' in text
    assert 'perfcast_request_seconds_sum{route="/x"} 20.020000' in text


def test_openapi_tells_of_every_route_with_models_that_exist(server):
    told = request(f"{server}/openapi.json").json()
    assert set(told["paths"]) == {"/health", "/metrics", "/vocabulary", "/parts", "/forecast", "/complete"}
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(told)))
    assert {"Machine", "Forecasts", "Problem"} <= names <= set(told["components"]["schemas"])
    options = {one["name"] for one in told["paths"]["/forecast"]["post"]["parameters"]}
    assert options == {"level", "when", "assume", "neighbours", "explain", "partial"}


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
        assert not re.search(r"<style|style=|\son\w+=|<script>", text), "the policy refuses what is inline"


def test_every_answer_has_safe_headers(server):
    for reply in (
        request(server),
        request(f"{server}/health"),
        request(f"{server}/no"),
        request(f"{server}/forecast", []),
    ):
        headers = {name.lower(): value for name, value in reply.headers.items()}
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers or "uvicorn" in headers["server"]


# Bounds


def test_a_body_of_ten_megabytes_is_refused_announced_or_not(server):
    large = b'{"processor": "' + b"x" * 10_000_000 + b'"}'
    announced = request(f"{server}/forecast", large)
    assert (announced.status, "at most 1048576 bytes" in announced.error) == (413, True)
    streamed = request(f"{server}/forecast", None, JSON)  # a GET for comparison: not this door
    assert streamed.status == 405
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=60)
    pieces = (large[start : start + 65536] for start in range(0, len(large), 65536))
    connection.request("POST", "/forecast", pieces, JSON, encode_chunked=True)
    reply = connection.getresponse()
    assert reply.status == 413
    assert "it has more" in json.loads(reply.read())["error"]


def test_a_batch_is_bounded(server):
    reply = request(f"{server}/forecast", [KNOWN] * 201)
    assert (reply.status, "at most 200 machines, however: it has 201" in reply.error) == (413, True)


def test_another_host_is_refused(server):
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
        reply = request(f"{server}/health", headers={"Host": host})
        assert (reply.status, "the server must be called" in reply.error) == (400, True)
    assert request(f"{server}/health", headers={"Host": "localhost:1"}).status == 200
    with served(project().champion, hosts=None) as open_to_all:
        assert request(f"{open_to_all}/health", headers={"Host": "evil.example"}).status == 200


class _Slow(RidgePredictor):
    """Answers when it is let go."""

    def __init__(self, known, gate):
        self.__dict__.update(known.__dict__)
        self._gate = gate

    def predict(self, X):
        self._gate.wait(30)
        return super().predict(X)


class _Broken(_Slow):
    def predict(self, X):
        raise ZeroDivisionError("secret of the inside")


def test_a_request_that_takes_too_long_is_given_up_and_the_next_is_answered():
    gate = threading.Event()
    champion = project().champion
    slow = replace(champion, predictor=_Slow(champion.predictor, gate))
    with served(slow, replace(DEFAULTS, seconds=1.0, waiting=2)) as address:
        with ThreadPoolExecutor(3) as pool:
            asked = [
                pool.submit(request, f"{address}/forecast{PLAIN}", {**KNOWN, "tdp": 150 + place}) for place in range(3)
            ]
            replies = sorted(one.result().error for one in asked)
        assert ["the server is busy" in error for error in replies] == [False, False, True] or replies[0].startswith(
            "at most"
        )
        assert sum("it took longer than 1 s" in error for error in replies) == 2
        assert {one.result().status for one in asked} == {503}
        gate.set()
        until = time.monotonic() + 20
        while (reply := request(f"{address}/forecast{PLAIN}", KNOWN)).status == 503 and time.monotonic() < until:
            time.sleep(0.1)
        assert reply.status == 200


def test_a_body_that_does_not_come_is_given_up(server):
    with served(project().champion, replace(DEFAULTS, seconds=0.5)) as address:
        place = urlsplit(address)
        with socket.create_connection((place.hostname, place.port), timeout=20) as half:
            half.sendall(
                b"POST /forecast HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
            )
            assert half.recv(4096).startswith(b"HTTP/1.1 408")


def test_an_unexpected_error_tells_the_log_and_not_the_client(capfd):
    champion = project().champion
    broken = replace(champion, predictor=_Broken(champion.predictor, None))
    with served(broken) as address:
        reply = request(f"{address}/forecast{PLAIN}", KNOWN)
        assert (reply.status, reply.error) == (500, "the forecast failed unexpectedly; the server's log says why")
        assert "default-src" in reply.headers["content-security-policy"]
        assert request(f"{address}/health").status == 200
        assert request(f"{address}/forecast{PLAIN}", {"processor": "Zeus 1"}).status == 422
    assert "ZeroDivisionError: secret of the inside" in capfd.readouterr().err


# Many at once


def test_many_at_once_get_what_each_would_get_alone(server):
    machines = [{**KNOWN, "tdp": 100 + place, "chips": 1 + place % 2} for place in range(24)]
    machines[5], machines[11] = WRONG, {"processor": "Zeus 1"}
    address = f"{server}/forecast?explain=false&neighbours=2"
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda machine: request(address, machine), machines))
    errors = {place: reply.error for place, reply in enumerate(replies) if reply.status != 200}
    assert list(errors) == [5, 11], errors
    assert "(machine 1)" in errors[5]
    options = {"explain": False, "neighbours": 2, "when": pd.Timestamp.now().normalize()}
    for machine, reply in zip(machines, replies, strict=True):
        if reply.status == 200:
            alone = perfcast.predict(machine, project().champion, **options).to_dict()["machines"][0]
            told = reply.json()["machines"][0]
            assert told["line"] == 1
            for one, other in zip(told["estimates"], alone["estimates"], strict=True):
                near, known = one.pop("neighbours"), other.pop("neighbours")
                assert [neighbour["result"] for neighbour in near] == [neighbour["result"] for neighbour in known]
                assert [one[name] for name in ("median", "low", "high", "support")] == [
                    pytest.approx(other[name], rel=1e-9) for name in ("median", "low", "high", "support")
                ]
                assert (one["task"], one["unlike"]) == (other["task"], other["unlike"])


# The command


def test_the_command_says_what_is_wrong_in_one_line(tmp_path, capsys):
    folder = ["--champion", str(project().folder)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1]), *folder]) == 2
    assert re.fullmatch(r"perfcast serve: the server needs a free port, however: .*\n", capsys.readouterr().err)
    for options, words in (
        (["--port", "0", "--champion", str(tmp_path)], "there must be a champion"),
        (["--port", "70000", *folder], "--port must be from 0 to 65535"),
        (["--port", "0", "--host", "no such host", *folder], "--host must be an address of this machine"),
        (["--port", "0", "--host", "192.0.2.1", *folder], "the server needs a free port"),
        (["--port", "0", "--max-batch", "0", *folder], "--max-batch must be from 1 to 10000"),
    ):
        assert main(["serve", *options]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("end", "host"), [(signal.SIGINT, "127.0.0.1"), (signal.SIGTERM, "0.0.0.0")], ids=["SIGINT", "SIGTERM"]
)
def test_the_command_serves_until_it_is_told_to_end(end, host):
    command = [sys.executable, "-m", "perfcast.cli.main", "serve", "--port", "0", "--host", host]
    source = str(perfcast.__path__[0]).removesuffix("perfcast")
    running = subprocess.Popen(
        [*command, "--champion", str(project().folder), "--max-batch", "2"],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told = running.stdout.readline()
        port = re.fullmatch(rf"perfcast on http://{re.escape(host)}:(\d+)\n", told)[1]
        address = f"http://127.0.0.1:{port}"
        assert request(f"{address}/forecast{PLAIN}", KNOWN).status == 200
        assert request(f"{address}/forecast{PLAIN}", [KNOWN] * 3).status == 413
        running.send_signal(end)
        _, errors = running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0
    assert ("lets other machines ask" in errors) == (host == "0.0.0.0")
    assert "Traceback" not in errors
