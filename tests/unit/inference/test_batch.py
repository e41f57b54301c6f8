"""Predictions by library and command: batches with machines that cannot be used, messages of one line, files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from champion_project import KNOWN, PLAIN, TITLES, project
from deployment_project import KNOWN as DEPLOYMENT
from deployment_project import champion as deployment_champion

import perfcast
from perfcast.cli.main import main
from perfcast.cli.rank import make_candidates
from perfcast.decisions.criteria import read_request
from perfcast.decisions.display import format_predictions
from perfcast.decisions.ranking import rank_machines
from perfcast.inference import PredictOptions, load_champion, read_machines
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.name_lookup import TaskNames
from perfcast.inference.predict import predict_machines
from perfcast.inference.prediction import OK, REFUSED
from perfcast.inference.suites import Suites
from perfcast.uncertainty.conformal import ConformalCalibration
from perfcast.utils.errors import UserError

CSV = """name,processor,chips,price
good,Xeon Gold 6148,2,100
unknown,Zeus 1,2,100
many,Xeon Gold 6148,64,100
text,Xeon Gold 6148,two,100
late,Xeon Gold 6148,1,100
"""
RUN = ["--results", str(project().results)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "machines.csv"
    path.write_text("\n".join(line.partition(",")[2].rpartition(",")[0] for line in CSV.splitlines()))
    return path


NASTY = {
    "chips must be between": [{**KNOWN, "chips": 0}, {**KNOWN, "chips": -1}, {**KNOWN, "chips": 1e300}],
    "chips must be a number": [{**KNOWN, "chips": text} for text in ("two", "2 V", "1_0", "nan", "inf")],
    "chips must be a whole number": [{**KNOWN, "chips": 1.5}, {**KNOWN, "chips": "1.5"}],
    "chips must be one value": [{**KNOWN, "chips": [2]}],
    "chips must be at most": [{**KNOWN, "chips": 10**600}],
    "dimm_count must be a whole number": [{**KNOWN, "dimm_count": 0.5}],
    "cores_enabled_total must be a whole number": [{**KNOWN, "cores_enabled_total": 39.5}],
    "threads_per_core: 3 threads per core": [{**KNOWN, "threads_per_core": 3}],
    "test_month must be a month": [{**KNOWN, "test_month": text} for text in ("1800-01", "2026-13", "9999-12")],
    "suite must be one of CFP2017rate": [{**KNOWN, "suite": "CINT2006rate"}],
    "must be described by known names": [{**KNOWN, "chipz": 2}, {"base_score": 100}],
    "the known one that comes nearest: Skylake-SP": [{**KNOWN, "family": "Skylake-SQ"}],
    "names none; describe a new one: add cores, clock": [{"chips": 2}],
    "describe a new one: add clock": [{"processor": "Zeus", "cores": 4}],
    "cpu must be a known CPU model": [{"cpu": "Xeon Gold 61480", "chips": 2}],
    "must be described by at least one field": [{}, {"chips": ""}, {"result_id": "cpu2017-20300101-00001"}],
    "must be text that can be printed": [{**KNOWN, "os": "SLES \x1b[31m"}],
    "processor must be a known CPU model": [{"processor": "\N{MICRO SIGN}", "chips": 2}, {"processor": "=1+1"}],
    "must agree": [{**KNOWN, "sockets": 1}],
}
"""Beginning of a reason -> machines that are refused with it."""


def test_every_other_machine_of_a_nasty_batch_is_answered_in_order():
    reasons = [reason for reason, machines in NASTY.items() for _ in machines]
    machines = [machine for listed in NASTY.values() for machine in listed]
    batch = [each for machine in machines for each in (KNOWN, machine)]
    answer = predict_machines(read_machines(batch), Suites(project().champion), PLAIN)
    assert [machine.line for machine in answer] == list(range(1, len(batch) + 1))
    assert [machine.status for machine in answer] == ["ok", "refused"] * len(reasons)
    (alone,) = predict_machines(read_machines(KNOWN), Suites(project().champion), PLAIN)
    assert all(machine.estimates == alone.estimates for machine in answer.machines[::2])
    messages = [machine.message for machine in answer.refused]
    assert [message for message, reason in zip(messages, reasons, strict=True) if reason not in message] == []
    assert [message for message in messages if "\n" in message or "\x1b" in message] == []
    frame = answer.to_frame()
    assert frame["status"].tolist() == (["ok"] * 4 + ["refused"]) * len(reasons)
    assert frame.loc[frame["status"] == "refused", "estimate"].isna().all()
    for machine, reason in zip(machines, reasons, strict=True):
        for wrong, strict in (([KNOWN, machine], True), (machine, False)):
            with pytest.raises(UserError) as raised:
                predict_machines(read_machines(wrong), Suites(project().champion), PLAIN, strict=strict)
            assert reason in str(raised.value)


def test_python_answers_every_machine_that_it_can():
    champion = perfcast.load_champion(project().folder)
    answer = champion.predict([KNOWN, {"processor": "Zeus 1"}], explain=False)
    assert [(machine.status, len(machine.estimates)) for machine in answer] == [("ok", 4), ("refused", 0)]
    with pytest.raises(perfcast.UserError, match="machine 2 has 'Zeus 1'"):
        champion.predict([KNOWN, {"processor": "Zeus 1"}], strict=True)


def test_champions_of_no_and_of_other_folders_are_refused(tmp_path):
    with pytest.raises(UserError, match="there must be a champion of 'spec_cpu2017'"):
        load_champion(tmp_path, "spec_cpu2017")
    with pytest.raises(UserError, match="'spec_cpu2017'"):
        load_champion(project().folder, "perfcastdb")


def test_dictionaries_frames_and_files_have_one_answer(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(KNOWN))
    champion = perfcast.load_champion(project().folder)
    inputs = (KNOWN, [KNOWN], pd.DataFrame([KNOWN]), path, str(path), {**KNOWN, "chips": np.float64(2)})
    answers = [perfcast.predict(machines, champion, explain=False) for machines in inputs]
    assert len({json.dumps(answer.to_dict()) for answer in answers}) == 1
    assert answers[0].kind == "estimates, not official results"


def test_predict_command_prints_estimates_intervals_and_notes(tmp_path, capsys):
    command = ["predict", *RUN, "--processor", "XeonGold6148", "--chips", "2"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) <= 30
    for words in ("90 % interval", "to narrow the intervals: state ", "--explain shows"):
        assert words in printed.out
    assert "given (" not in printed.out and "runcpu" not in printed.out
    assert "2 x xeon gold 6148" in printed.out and "was read as 'xeon gold 6148'" in printed.out
    assert "estimates are not official results" in printed.err
    assert main(["predict", *RUN, "--processor", "EPYC 7763", "--chips", "2"]) == 0
    assert "assumed, what changes the estimates most: " in capsys.readouterr().out
    assert main([*command, "--explain"]) == 0
    explained = capsys.readouterr().out
    for words in (
        "nearest measured machines\n",
        "drivers: ",
        "given (",
        "looked up (",
        "assumed (",
        "basis: ",
        "to check",
    ):
        assert words in explained
    written = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for out in written:
        assert main([*command, "--out", str(out), *["--explain"][: out == written[1]]]) == 0
    assert written[0].read_bytes() == written[1].read_bytes()
    assert pd.read_csv(written[0])["task"].tolist() == TITLES


def test_one_machine_with_several_answers_is_one_table_with_published_results(capsys):
    assert main(["predict", *RUN, "--processor", "Xeon Gold 6148"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 34, "12 rows of the table, and what is said of three answers"
    (header,) = [line for line in lines if line.split()[:1] == ["machine"]]
    assert header.split()[:4] == ["machine", "task", "published", "estimate"]
    rows = [line for line in lines if "SPECrate2017_int_base" in line and "xeon gold 6148  " in line]
    # it is sold for 1, 2 and 4 processors, and has results with 1 and 2
    assert [bool(re.search(r"\d \(\d+\) ", row)) for row in rows] == [True, True, False]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--processor", "Xeon Gold 6148", "--level", "90"], "0.9 means 90 %"),
        (["--processor", "Xeon Gold 6148", "--when", "soon"], "2026-03"),
        (["--set", "chip=2"], "chips"),
        ([], "--processor 'EPYC 9654'"),
    ],
)
def test_predict_command_reports_mistakes_in_one_line(capsys, options, words):
    assert main(["predict", *RUN, *options]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_predict_command_writes_reasons_and_exits_with_3(table, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    assert main(["predict", str(table), *RUN, "--out", str(out)]) == 3
    written = pd.read_csv(out).drop_duplicates("line").set_index("line")
    assert written["status"].tolist() == ["ok", "refused", "refused", "refused", "ok"]
    assert written.loc[3, "message"].startswith("processor must be a known CPU model, but line 3 has 'Zeus 1'")
    assert "3 of 5 machines refused" in capsys.readouterr().err
    assert main(["predict", str(table), *RUN]) == 3
    assert "line 4: refused, chips: 64 is more than" in " ".join(capsys.readouterr().out.split())
    assert main(["predict", str(table), *RUN, "--json"]) == 3
    machines = json.loads(capsys.readouterr().out)["machines"]
    assert [machine["status"] for machine in machines] == ["ok", "refused", "refused", "refused", "ok"]


def test_strict_command_stops_and_a_batch_without_answers_exits_with_2(table, tmp_path, capsys):
    assert main(["predict", str(table), *RUN, "--strict"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    table.write_text("processor,chips\nZeus 1,2\nZeus 2,2\n")
    out = tmp_path / "none.csv"
    assert main(["predict", str(table), *RUN, "--out", str(out)]) == 2
    assert pd.read_csv(out)["status"].tolist() == ["refused", "refused"]


def test_rank_command_keeps_refused_candidates(tmp_path, capsys):
    path, out = tmp_path / "candidates.csv", tmp_path / "ranking.csv"
    path.write_text(CSV + "free,Xeon Gold 6148,2,\nodd,Xeon Gold 6148,2,cheap\n")
    assert main(["rank", str(path), *RUN, "--by", "score/price", "--out", str(out)]) == 3
    ranked = pd.read_csv(out).set_index("name")
    assert ranked["status"].eq("ok").sum() == 2
    assert ranked.index[:2].tolist() == ["good", "late"]
    assert "needs the price" in ranked.loc["line 7 (free)", "message"]
    assert "price must be a positive number" in ranked.loc["line 8 (odd)", "message"]
    assert "5 of 7 machines refused" in capsys.readouterr().err
    assert main(["rank", str(path), *RUN]) == 3
    assert "line 3 (unknown): refused, processor must be" in " ".join(capsys.readouterr().out.split())
    assert main(["rank", str(path), *RUN, "--strict"]) == 2


OFFERS = """name,proccessor,cpu,memory,os,price,region,status
Offer A,,2x Xeon Gold 6148,12x32,RHEL 9,100,eu,new
Offer B,,2 x Xeon Gold 6148,lots,RHEL 9,100,eu,used
Offer C,,dual Xeon Gold 6148,32GBx12,BananaOS,90,us,new
"""


@pytest.fixture
def offers(tmp_path):
    path = tmp_path / "offers.csv"
    path.write_text(OFFERS)
    return path


@pytest.mark.parametrize("command", [["predict", "--brief"], ["rank"]])
def test_commands_carry_unknown_columns_with_one_note(offers, command, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    assert main([command[0], str(offers), *RUN, "--out", str(out)]) == 3
    errors = capsys.readouterr().err
    assert errors.count("carried to the answer unread: proccessor (did you mean processor?), region, status") == 1
    written = pd.read_csv(out).drop_duplicates("line").set_index("line")
    assert written["region"].sort_index().tolist() == ["eu", "eu", "us"]
    assert written["carried.status"].sort_index().tolist() == ["new", "used", "new"]
    assert "memory must be size and modules of memory" in written.loc[3, "message"]
    assert "line 3 (Offer B) has 'lots'" in written.loc[3, "message"]
    if command[0] == "predict":
        assert written["name"].tolist() == ["Offer A", "Offer B", "Offer C"] and written.loc[2, "price"] == 100
    assert main([*command, str(offers), *RUN]) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "os 'BananaOS' was ignored" in shown and "line 3 (Offer B): refused" in shown


def test_compare_command_skips_what_cannot_be_used(offers, capsys):
    assert main(["compare", str(offers), "2 x Xeon Gold 6148; price=3", *RUN]) == 3
    shown = capsys.readouterr()
    assert "line 3 (Offer B): refused, memory must be" in " ".join(shown.out.split())
    assert "C: 2 x xeon gold 6148" in shown.out and "D:" not in shown.out
    assert "3 machines compared" in shown.err and "1 of 4 machines refused" in shown.err
    assert main(["compare", "2 x Xeon Gold 6148", "Zeus 1", *RUN]) == 2
    assert "'Zeus 1'" in capsys.readouterr().err


def test_a_frame_keeps_its_columns_and_python_warns():
    champion = perfcast.load_champion(project().folder)
    frame = pd.DataFrame([{**KNOWN, "name": "a", "rack": 7, "chipz": 1.5}, {**KNOWN, "name": "b", "rack": 8}])
    with pytest.warns(UserWarning, match=r"rack, chipz \(did you mean chips\?\)"):
        answer = champion.predict(frame, explain=False)
    assert answer.to_frame().drop_duplicates("line")[["name", "rack"]].to_numpy().tolist() == [["a", 7], ["b", 8]]
    assert json.loads(json.dumps(answer.to_dict()))["machines"][1]["carried"] == {"name": "b", "rack": 8, "chipz": None}


BRIEF = PredictOptions(neighbors=0, explain=False)


@cache
def wide(*tasks):
    """Return the champion with intervals of a factor of 1000 for some tasks, and of 2 for others."""
    known = deployment_champion()
    quantiles = {
        output: [place / 200 * (3.9 if not tasks or output.split("\x1f")[0] in tasks else 0.4) for place in range(201)]
        for output in known.calibrated.calibration.quantiles
    }
    state = {"base": 1.0, "weights": dict.fromkeys(known.calibrated.in_domain.names, 0.0), "most": 9.0}
    calibration = ConformalCalibration.from_state({**state, "quantiles": quantiles})
    return replace(known, calibrated=replace(known.calibrated, calibration=calibration))


def predict_deployment(by):
    return predict_machines([MachineEntry(1, "line 1", DEPLOYMENT)], Suites(by), BRIEF)


def test_one_output_is_refused_and_the_others_are_predicted():
    answer = predict_deployment(wide("ttft"))
    (machine,) = answer
    assert (machine.status, [each.task for each in machine.estimates]) == (OK, ["tpot"])
    assert [each.task for each in machine.unpredicted] == ["ttft"]
    assert "more than 20" in machine.notes[0] and "measured gpu: B200, GB200, H100, H200" in machine.notes[0]
    rows = answer.to_frame().set_index("task")
    assert (rows.loc["ttft", "status"], rows.loc["tpot", "status"]) == (REFUSED, OK)
    assert rows.loc["ttft", "message"].startswith("ttft cannot be predicted: its 90 % interval would span a factor of")
    assert rows.loc["ttft", ["estimate", "low", "high"]].isna().all()
    assert answer.to_dict()["machines"][0]["unpredicted"][0]["task"] == "ttft"


def test_a_machine_without_any_output_is_refused():
    answer = predict_deployment(wide())
    (machine,) = answer
    assert (machine.status, machine.estimates, len(answer.refused)) == (REFUSED, (), 1)
    assert list(answer.to_frame()["status"]) == [REFUSED] * 2
    assert "refused, tpot cannot be predicted" in format_predictions(answer)
    assert [each.status for each in predict_deployment(deployment_champion())] == [OK]


def test_a_ranking_refuses_what_it_cannot_predict():
    entries = make_candidates(DEPLOYMENT, [])
    with pytest.raises(UserError, match="cannot be ranked, but ttft cannot be predicted"):
        rank_machines(entries, Suites(wide("ttft")), read_request(["ttft <= 500"], Suites(wide("ttft"))), BRIEF)
    assert rank_machines(
        entries, Suites(wide("ttft")), read_request(["tpot <= 50"], Suites(wide("ttft"))), BRIEF
    ).candidates


@pytest.mark.parametrize(("typed", "known"), [("Dell Inc.", "Dell"), ("Hewlett Packard Enterprise", "HPE")])
def test_a_typed_vendor_is_that_of_the_results(typed, known):
    cells = project().champion.fields.cells({"hw_vendor": typed}, "the machine")
    assert cells == project().champion.fields.cells({"vendor": known}, "the machine") == {"hw_vendor": known}


def test_a_spreadsheet_is_refused_with_the_way_to_read_it(tmp_path):
    (tmp_path / "fleet.xlsx").write_bytes(b"PK")
    with pytest.raises(UserError, match="save it as CSV"):
        project().champion.read_entries(tmp_path / "fleet.xlsx")


def test_an_unknown_task_suggests_what_is_near_and_lists_few_names():
    names = TaskNames([*(f"task {number}" for number in range(20)), "gptj/Server"], {})
    for text, hint in (("gpt-oss-120b/Server", ""), ("gpt-j/server", "did you mean 'gptj/Server'?")):
        with pytest.raises(UserError) as raised:
            names.get(text, "--task")
        assert raised.value.remedy == hint
        assert "task 7 and 13 more" in str(raised.value) and "task 8" not in str(raised.value)
