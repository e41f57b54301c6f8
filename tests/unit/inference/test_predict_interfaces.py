"""Prediction by library and command: matched names, messages of one line, printed and written results."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from champion_project import KNOWN, TITLES, predict, project

import perfcast
from perfcast.cli.main import main
from perfcast.inference import load_champion
from perfcast.inference.machine_files import read_entries
from perfcast.utils.errors import UserError


def test_mistyped_processor_is_matched_with_a_note():
    answer = predict({"processor": "XeonGold6148", "chips": 2})
    assert answer.machines[0].machine == "2 x xeon gold 6148"
    assert "was read as 'xeon gold 6148'" in answer.machines[0].notes[-1]


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ({"processor": "Xeon Gold 61480", "chips": 2}, "processor must be a known CPU model"),
        ({"cpu": "Xeon Gold 61480", "chips": 2}, "cpu must be a known CPU model"),
        ({**KNOWN, "suite": "CINT2006rate"}, "suite must be one of CFP2017rate"),
        ({"chips": 2}, "names none; describe a new one: add cores, clock"),
        ({"processor": "Zeus", "cores": 4}, "describe a new one: add clock"),
        ({**KNOWN, "family": "Skylake-SQ"}, "the known one that comes nearest: Skylake-SP"),
        ({"base_score": 100}, "'base_score'"),
        ({"chip": 2}, "chips"),
        ({}, "at least one field"),
        ({"chips": "two"}, "chips must be a number"),
    ],
)
def test_predict_refuses_invalid_machines(machine, words):
    with pytest.raises(UserError) as error:
        predict(machine)
    assert words in str(error.value)


def test_load_champion_refuses_missing_and_foreign_folders(tmp_path):
    with pytest.raises(UserError, match="there must be a champion of 'spec_cpu2017'"):
        load_champion(tmp_path, "spec_cpu2017")
    with pytest.raises(UserError, match="'spec_cpu2017'"):
        load_champion(project().folder, "perfcastdb")


def test_predict_accepts_dictionaries_frames_and_files(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(KNOWN))
    champion = perfcast.load_champion(project().folder)
    answers = [
        perfcast.predict(machines, champion, explain=False)
        for machines in (KNOWN, [KNOWN], pd.DataFrame([KNOWN]), path, str(path))
    ]
    assert len({json.dumps(answer.to_dict()) for answer in answers}) == 1
    assert answers[0].kind == "estimates, not official results"


def test_predict_command_prints_estimates_intervals_and_notes(capsys):
    command = ["predict", "--results", str(project().results), "--processor", "Xeon Gold 6148", "--chips", "2"]
    assert main(command) == 0
    printed = capsys.readouterr()
    for words in ("90 % interval", "nearest measured machines", "drivers", "given (", "looked up (", "assumed ("):
        assert words in printed.out
    assert "estimates are not official results" in printed.err
    assert main([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [estimate["task"] for estimate in answer["machines"][0]["estimates"]] == TITLES


def test_predict_command_writes_equal_bytes(tmp_path):
    path = tmp_path / "machines.csv"
    path.write_text("processor,chips\nXeon Gold 6148,2\n")
    written = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for out in written:
        assert main(["predict", str(path), "--results", str(project().results), "--out", str(out)]) == 0
    assert written[0].read_bytes() == written[1].read_bytes()
    assert pd.read_csv(written[0])["task"].tolist() == TITLES


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--processor", "Xeon Gold 6148", "--level", "90"], "0.9 means 90 %"),
        (["--processor", "Xeon Gold 6148", "--when", "soon"], "2026-03"),
        (["--set", "chip=2"], "chips"),
        (["--set", "tdp"], "NAME=VALUE"),
        ([], "--processor 'EPYC 9654'"),
        (["--processor", "Xeon Gold 9"], "must be a known CPU model"),
        (["nowhere.csv"], "no file nowhere.csv"),
        (["machines.txt"], "must end in"),
    ],
)
def test_predict_command_reports_mistakes_in_one_line(capsys, options, words):
    assert main(["predict", "--results", str(project().results), *options]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_read_entries_keeps_line_numbers(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("chips\n2\n\n1\n")
    assert [entry.line for entry in read_entries(path)] == [2, 4]
