"""Batches with machines that cannot be used: the others are answered, and the exit code says so."""

import json

import pandas as pd
import pytest
from champion_project import KNOWN, PLAIN, project

import perfcast
from perfcast.cli.main import main
from perfcast.inference import read_machines
from perfcast.inference.predict import predict_batch
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


def test_predict_batch_answers_in_order_and_states_reasons():
    machines = [KNOWN, {"processor": "Zeus 1"}, {**KNOWN, "suite": "CINT2006rate"}, {**KNOWN, "chips": 64}, KNOWN]
    champion = project().champion
    answer = predict_batch(read_machines(machines), champion, PLAIN)
    assert [machine.line for machine in answer] == [1, 2, 3, 4, 5]
    assert [machine.status for machine in answer] == ["ok", "refused", "refused", "refused", "ok"]
    words = ["must be a known CPU model", "suite must be one of", "64 is more than the 2 sockets"]
    assert [word in machine.message for word, machine in zip(words, answer.refused, strict=True)] == [True] * 3
    (alone,) = predict_batch(read_machines(KNOWN), champion, PLAIN)
    assert answer.machines[4].estimates == alone.estimates
    frame = answer.to_frame()
    assert frame["status"].tolist() == ["ok"] * 4 + ["refused"] * 3 + ["ok"] * 4
    assert frame.loc[frame["status"] == "refused", "estimate"].isna().all()


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
    "suite must be one of": [{**KNOWN, "suite": "CINT2006rate"}],
    "must be described by known names": [{**KNOWN, "chipz": 2}],
    "must be described by at least one field": [{}, {"chips": ""}, {"result_id": "cpu2017-20300101-00001"}],
    "must be text that can be printed": [{**KNOWN, "os": "SLES \x1b[31m"}],
    "processor must be a known CPU model": [{"processor": "\N{MICRO SIGN}", "chips": 2}, {"processor": "=1+1"}],
    "must agree": [{**KNOWN, "sockets": 1}],
}
"""Beginning of a reason -> machines that are refused with it."""


def test_every_other_machine_of_a_nasty_batch_is_answered():
    reasons = [reason for reason, machines in NASTY.items() for _ in machines]
    machines = [machine for listed in NASTY.values() for machine in listed]
    batch = [each for machine in machines for each in (KNOWN, machine)]
    answer = predict_batch(read_machines(batch), project().champion, PLAIN)
    assert len(reasons) >= 25
    assert [machine.status for machine in answer] == ["ok", "refused"] * len(reasons)
    assert all(machine.estimates == answer.machines[0].estimates for machine in answer.machines[::2])
    messages = [machine.message for machine in answer.refused]
    assert [message for message, reason in zip(messages, reasons, strict=True) if reason not in message] == []
    assert [message for message in messages if "\n" in message or "\x1b" in message] == []
    for machine in machines:
        with pytest.raises(UserError):
            predict_batch(read_machines([KNOWN, machine]), project().champion, PLAIN, strict=True)


def test_names_of_results_are_ignored_with_a_note():
    (machine,) = predict_batch(read_machines({**KNOWN, "result_id": "x"}), project().champion, PLAIN)
    assert [note for note in machine.notes if note.startswith("result_id 'x' was ignored")]


@pytest.mark.parametrize("wrong", [{"processor": "Zeus 1"}, {**KNOWN, "chips": 64}])
def test_strict_and_single_machines_raise(wrong):
    for machines, strict in (([KNOWN, wrong], True), (wrong, False)):
        with pytest.raises(UserError, match=r"known CPU model|2 sockets"):
            predict_batch(read_machines(machines), project().champion, PLAIN, strict=strict)


def test_python_answers_every_machine_that_it_can():
    champion = perfcast.load_champion(project().folder)
    answer = champion.predict([KNOWN, {"processor": "Zeus 1"}], explain=False)
    assert [(machine.status, len(machine.estimates)) for machine in answer] == [("ok", 4), ("refused", 0)]
    with pytest.raises(perfcast.UserError, match="machine 2 has 'Zeus 1'"):
        champion.predict([KNOWN, {"processor": "Zeus 1"}], strict=True)


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
    table.write_text("processor,chips\nXeon Gold 6148,2\n")
    assert main(["predict", str(table), *RUN, "--brief"]) == 0


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
