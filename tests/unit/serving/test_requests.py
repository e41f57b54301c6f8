"""Answers equal those of Python; invalid bodies, machines and options get one line with reason and remedy."""

from __future__ import annotations

import json

import pytest
from champion_project import project
from serving_project import JSON, KNOWN, PLAIN, WRONG, request

import perfcast
from perfcast.cli.main import main
from perfcast.inference.prediction import as_csv
from perfcast.serving import api_models as response_models
from perfcast.utils.errors import UserError

BAD_BODIES = {
    b"": (400, "it is empty"),
    b"   ": (400, "it is empty"),
    b'{"processor": ': (400, "the body must be JSON"),
    b"\xff\xfe\x00": (400, "must be UTF-8 text"),
    b"Name,Model,Score\nx,y,3\n": (400, "the body must be JSON"),
    b'"EPYC 9654"': (400, "it is 'EPYC 9654'"),
    b"null": (400, "it is 'None'"),
    b"[]": (400, "it describes none"),
    b'{"machines": []}': (400, "it describes none"),
    b'{"machines": 3}': (400, "must describe a machine"),
    b'{"machines": [{"chips": 2}], "level": 0.5}': (400, "options such as level into the query"),
    b'{"chips": NaN}': (400, "numbers in the body must be finite"),
    b'{"chips": 1e999}': (422, "chips must be a number"),
    b'{"chips": 2, "chips": 4}': (400, "a name is repeated"),
    b"[" * 100_000: (400, "nested 3 deep at most"),
    b'{"chips": {"b": {"c": {"d": 1}}}}': (422, "chips must be one value"),
    b"[1, 2]": (422, "must hold names with values"),
    b"{}": (422, "at least one field"),
    b'{"chips": null}': (422, "at least one field"),
    b'{"processor": "Xeon Gold 6148", "memory": "24 x 0 GB"}': (422, "memory (mem_total_gb) must be"),
    b'{"chips": [1, 2]}': (422, "chips must be one value"),
    b'{"chips": ' + b"9" * 5000 + b"}": (400, "the body must be JSON"),
    b'{"processor": "' + b"x" * (1 << 20) + b'"}': (413, "at most 1048576 bytes"),
    b"[" + b"{}," * 1000 + b"{}]": (413, "at most 1000 machines, but this one has 1001"),
}


def test_invalid_body_gets_one_line(server):
    for body, (status, words) in BAD_BODIES.items():
        reply = request(f"{server}/predict", body)
        assert (reply.status, words in reply.error) == (status, True), (body[:50], reply.error)


BAD_OPTIONS = {
    "level=2": "level must be less than 1",
    "level=nan": "level must be a finite number",
    "when=yesterday": "when must be a month such as 2026-03",
    "when=0001-01": "when must be a month",
    "neighbors=1000": "neighbors must be less than or equal to 10",
    "neighbors=1.5": "neighbors must be a valid integer",
    "explain=perhaps": "explain must be a valid boolean",
    "levle=0.5": "did you mean 'level'",
}


def test_invalid_option_is_refused(server):
    for query, words in BAD_OPTIONS.items():
        reply = request(f"{server}/predict?{query}", KNOWN)
        assert (reply.status, words in reply.error) == (422, True), reply.error


def test_invalid_machine_gets_the_message_of_the_library(server):
    for machine in (WRONG, {**KNOWN, "hw_avail": "March 2020"}, {"processor": "<script>alert(1)</script>\n\u202e"}):
        with pytest.raises(UserError) as caught:
            perfcast.predict(machine, project().champion)
        reply = request(f"{server}/predict", machine)
        assert (reply.status, reply.error) == (422, str(caught.value))


def test_invalid_machines_are_named_and_the_others_answered(server):
    machines = [KNOWN, {"processor": "Zeus 1"}, {**KNOWN, "chips": 1}, WRONG]
    answer = request(f"{server}/predict{PLAIN}", machines)
    assert answer.status == 200
    response_models.PredictResponse.model_validate(answer.json(), extra="forbid")
    results = answer.json()["machines"]
    assert [machine["line"] for machine in results] == [1, 2, 3, 4]
    assert [machine["status"] for machine in results] == ["ok", "refused", "ok", "refused"]
    assert "machine 2 has 'Zeus 1'" in results[1]["message"] and results[1]["estimates"] == []
    assert "(machine 4)" in results[3]["message"]
    assert results[0]["message"] == "" and len(results[0]["estimates"]) == 4


def test_strict_requests_and_those_without_any_answer_are_refused(server):
    reply = request(f"{server}/predict{PLAIN}&strict=true", [KNOWN, {"processor": "Zeus 1"}])
    assert (reply.status, "machine 2 has 'Zeus 1'" in reply.error) == (422, True)
    reply = request(f"{server}/predict{PLAIN}&strict=true", [KNOWN, WRONG])
    assert (reply.status, "(machine 2)" in reply.error) == (422, True)
    reply = request(f"{server}/predict{PLAIN}", [{"processor": "Zeus 1"}, WRONG])
    assert (reply.status, "machine 1 has 'Zeus 1'" in reply.error) == (422, True)


def test_other_media_types_are_refused(server):
    for kind in ("text/csv", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        reply = request(f"{server}/predict", b'{"chips": 2}', {"Content-Type": kind})
        assert (reply.status, "send it with Content-Type: application/json" in reply.error) == (415, True)


def test_unknown_routes_and_methods_get_one_line(server):
    assert request(f"{server}/nowhere").status == 404
    assert "GET /nowhere" in request(f"{server}/nowhere").error
    assert request(f"{server}/predict").status == 405
    assert request(f"{server}/predict", method="DELETE").status == 405
    assert request(f"{server}/static/../app.py").status == 404
    assert request(f"{server}/static/%2e%2e/app.py").status == 404


# Decisions

OTHER = {"processor": "Xeon Gold 6148", "chips": 1}
MEASURED = [{**KNOWN, "suite": "CINT2017rate", "score": 200}]


def test_decisions_equal_those_of_python(server):
    champion = perfcast.load_champion(project().folder)
    candidates = [{**KNOWN, "price": 3000, "name": "two"}, {**OTHER, "price": 2000, "name": "one"}]
    ranking = {"by": "score/cost", "targets": ["CINT2017rate >= 100"], "electricity_price": 0.3, "years": 4}
    expected = {
        "compare": ({"machines": [KNOWN, OTHER]}, champion.compare([KNOWN, OTHER])),
        "rank": ({"machines": candidates, **ranking}, champion.rank(candidates, **ranking)),
        "similar": ({"machines": [KNOWN], "count": 2}, champion.similar(KNOWN, count=2)),
        "what-if": ({"machine": KNOWN, "vary": ["chips=1,2"]}, champion.what_if(KNOWN, vary="chips=1,2")),
        "predict-measured": ({"machines": [KNOWN], "measured": MEASURED}, champion.predict(KNOWN, measured=MEASURED)),
    }
    for name, (body, answer) in expected.items():
        reply = request(f"{server}/{name}", body)
        assert reply.status == 200, (name, reply.body[:300])
        assert reply.json() == json.loads(json.dumps(answer.to_dict())), name
        reply = request(f"{server}/{name}", body, {**JSON, "Accept": "text/csv"})
        assert reply.headers["content-type"].startswith("text/csv")
        assert reply.body.decode() == as_csv(answer.to_frame()), name


FLEET = "Qty\tCPU\tchips\tutilization\track\n1,200\tXeon Gold 6148\t1\t45,5 %\tA\n0\tXeon Gold 6148\t1\t\tB\n"
SIZE = {"onto": [{"processor": "Xeon Gold 6148", "chips": 2, "cores": 3}], "mix": "int_rate"}


@pytest.mark.parametrize("text", [FLEET, FLEET.replace("\t", ";"), FLEET.replace(",", ".").replace("\t", ",")])
def test_pasted_fleet_is_read_as_the_file_of_the_command(server, tmp_path, capsys, text):
    text = text.replace("1.200", '"1,200"')
    (tmp_path / "fleet.csv").write_text(text)
    command = ["size", str(tmp_path / "fleet.csv"), "--results", str(project().results), "--mix", "int_rate"]
    for accept, form in (("application/json", "--json"), ("text/csv", "--csv")):
        assert main([*command, "--onto", "2 x Xeon Gold 6148; cores=3", form]) == 3
        printed = capsys.readouterr().out
        reply = request(f"{server}/size", {**SIZE, "fleet": text}, {**JSON, "Accept": accept})
        assert reply.status == 200
        if accept == "text/csv":
            assert reply.body.decode() == printed
        else:
            answer = json.loads(printed)
            assert reply.json() == answer
            assert [each["name"] for each in answer["refused"]] == ["line 3"]
            assert answer["machines"] == 1200
            assert any("unread: rack" in note for note in answer["notes"])


PASTED = {
    "": (422, "it has 0 rows"),
    " \n": (422, "column 1 has none"),
    "\x00\ufffd\x7fELF": (422, "it has 0 rows"),
    "count\n3\n": (422, "a row that can be used"),
    "120\tXeon Gold 6148\n40\tEPYC 7742\n": (422, "line 2 has none"),
    "count,processor\n1,\ud800\n": (422, "text that can be printed"),
    'count,processor\n"3,x': (422, "the table must be CSV, but line 2"),
    "count,processor\n1,x,y\n": (422, "line 2 has 3"),
    "count,count\n1,2\n": (422, "column 2 repeats it"),
    "count," * 2000: (422, "at most 1000 columns"),
    "x" * 900_000: (422, "the table must be CSV"),
    "processor,chips,count\n" + "Xeon Gold 6148,1,1\n" * 1001: (413, "at most 1000 machines, but this one has more"),
    "count\n" * 2_000_000: (413, "at most 1048576 bytes"),
}


def test_pasted_text_that_is_no_fleet_gets_one_line(server):
    for text, (status, words) in PASTED.items():
        reply = request(f"{server}/size", {**SIZE, "fleet": text})
        assert (reply.status, words in reply.error) == (status, True), (text[:40], reply.error)


REFUSED = [
    ("size", {**SIZE, "fleet": 5}, 422, "fleet must be a valid list"),
    ("size", {**SIZE, "fleet": [5]}, 422, "fleet.0 must be a valid dictionary"),
    ("size", {**SIZE, "fleet": []}, 422, "at least 1 item"),
    ("compare", {"machines": [KNOWN]}, 422, "2 to 8 machines"),
    ("rank", {"machines": [KNOWN, OTHER], "targets": ["fast"]}, 422, "targets must be TASK >= NUMBER"),
    ("rank", {"machines": [KNOWN, OTHER], "years": 0}, 422, "years must be"),
    ("similar", {"machines": [KNOWN], "tasks": ["nothing"]}, 422, "a task must be one of"),
    ("what-if", {"machine": KNOWN, "vary": ["cores=1..8:0"]}, 422, "step of vary cores"),
    ("what-if", {"machine": KNOWN, "vary": ["tdp=100..1000:0.5"]}, 422, "at most 1000 combinations"),
    ("compare", {"machines": [KNOWN] * 1001}, 413, "at most 1000 machines"),
    ("compare", {"machines": [KNOWN, OTHER], "color": 1}, 422, "color"),
    ("compare", {"machines": 3}, 400, "must describe a machine"),
    ("rank", {"machines": [KNOWN, OTHER], "sure": 2}, 422, "sure"),
    ("similar", {}, 400, "must describe a machine"),
]


def test_decisions_are_refused_in_one_line(server):
    for name, body, status, words in REFUSED:
        reply = request(f"{server}/{name}", body)
        assert (reply.status, words in reply.error) == (status, True), reply.error
