"""Invalid flags of every command, and impossible machines and months, in one table per kind."""

from __future__ import annotations

import pytest
from champion_project import project
from hostile_input import REPOSITORY, call, refused

from perfcast.cli.main import main

COMMANDS = {
    "no command": [],
    "no such command": "predictions",
    "ingest: a path": "pipeline ingest ../../etc/passwd --out out/x",
    "standardize: no raw folder": "pipeline standardize host_gemm --raw none --table x --rejected x --quality x",
    "split: no such": "pipeline split at_random --table none.parquet --out out/x",
    "split: a table that is none": "pipeline split random --table README.md --out out/x",
    "features: a table that is none": "pipeline features host_gemm --table README.md --out out/x",
    "in-domain: folds that are none": (
        "pipeline in-domain host_gemm random --table README.md --folds README.md --out out/x"
    ),
    "train: no such predictor": "pipeline train dataset=host_gemm split=random predictor=ridgee out=out/x",
    "train: an override": "pipeline train dataset=host_gemm split=random predictor=ridge out=out/x a=[",
    "train: no such key": "pipeline train dataset=host_gemm split=random predictor=ridge out=out/x predictor.parms.a=1",
    "train: a table that is none": "pipeline train dataset=host_gemm split=random predictor=ridge table=x out=out/x",
    "evaluate: no runs": "pipeline evaluate host_gemm --table x --runs none --splits a --predictors b --out out/x",
    "champion: no runs": (
        "pipeline champion host_gemm --runs none --table x --standard x --raw x --splits random --predictors "
        "ridge --out out/x"
    ),
    "leakage: no table": (
        "pipeline leakage host_gemm --table none --standard none --folds x --runs x --splits random "
        "--predictors ridge --out out/x"
    ),
    "plots: no evaluation": "pipeline plots host_gemm --evaluation none --out out/x",
    "metrics: no evaluation": "pipeline metrics none --out out/x",
    "available: nothing ingested": "pipeline available host_gemm --raw none --out out/x",
    "report: an experiment that is none": "pipeline report --out out/x --experiment {",
    "report: no results": "pipeline report --results none --out out/x",
    "compare: an empty folder": "compare src src",
    "summary: no results": "summary --results none",
    "fake: a folder in use": "pipeline fake src",
    "measure: a budget without end": "measure gemm --budget-minutes inf",
    "doctor: no project": "doctor --project none",
    "config: a name": "config predictor=../../params",
}
"""Typed words; the folder is the repository, and out/ must stay empty."""


@pytest.mark.parametrize("name", COMMANDS)
def test_invalid_command_gets_one_line(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for entry in ("conf", "params.yaml", "src", "README.md"):
        (tmp_path / entry).symlink_to(REPOSITORY / entry)
    message = refused(split_words(COMMANDS[name]), capsys, out=tmp_path / "out")
    command, colon, _ = name.partition(":")
    assert not colon or message.startswith((f"perfcast {command}", f"perfcast pipeline {command}")), message


def split_words(command):
    return command.split() if isinstance(command, str) else command


PREDICTION_COMMANDS = {
    "a level": "predict --processor x --level nan",
    "a month": "predict --processor x --when 2026-13",
    "neighbors": "predict --processor x --nearest -1",
    "a setting": "predict --set tdp",
    "a processor of 100 kB": ["predict", "--processor", "x" * 100_000],
    "chips": ["predict", "--processor", "Xeon Gold 6148", "--chips", "1e309"],
    "memory": ["predict", "--processor", "Xeon Gold 6148", "--chips", "2", "--set", "memory.total=99999999999999 GB"],
    "rank: no candidates": "rank none.csv",
    "rank: a goal": ["rank", "none.csv", "--target", "fprate >= lots"],
    "what-if: nothing varied": "what-if",
    "what-if: a range without end": ["what-if", "--processor", "Xeon Gold 6148", "--vary", "chips=1..1e9:0.001"],
    "what-if: too many": [
        "what-if",
        "--processor",
        "Xeon Gold 6148",
        "--vary",
        "chips=1..1000",
        "--vary",
        "cores=1..1000",
    ],
    "compare: a number of 5000 digits": ["compare", "9" * 5000 + " x Xeon Gold 6148", "Xeon Gold 6148"],
    "similar: a count": ["similar", "--processor", "Xeon Gold 6148", "--count", "0"],
    "serve: a host": ["serve", "--port", "0", "--host", "not a host"],
}


@pytest.mark.parametrize("name", PREDICTION_COMMANDS)
def test_invalid_prediction_command_gets_one_line(capsys, name):
    refused([*split_words(PREDICTION_COMMANDS[name]), "--champion", project().folder], capsys)


def test_an_answer_does_not_replace_its_input_and_says_what_it_replaces(capsys, tmp_path):
    machines, out = tmp_path / "machines.csv", tmp_path / "answer.csv"
    machines.write_text("processor,chips\nXeon Gold 6148,2\n")
    before = machines.read_text()
    command = ["predict", machines, "--champion", project().folder, "--out"]
    refused([*command, machines], capsys, "--out must not be an input")
    assert machines.read_text() == before
    assert call([*command, out], capsys)[0] == 0
    status, output = call([*command, out], capsys)
    assert status == 0
    assert "existed and was replaced" in output
    status, output = call([*command, out, "--processor", "none"], capsys)
    assert (status, "replaced" in output) == (2, False)


MACHINE = ["--processor", "Xeon Gold 6148", "--chips", "2"]
IMPOSSIBLE = {
    "half a chip": (["--processor", "Xeon Gold 6148", "--set", "chips=1.5"], "chips must be a whole number"),
    "three threads": ([*MACHINE, "--set", "threads_per_core=3"], "threads_per_core"),
    "year 1": ([*MACHINE, "--when", "0001-01"], "--when must be a month"),
    "infinite cache": ([*MACHINE, "--set", "l3_mb_per_chip=inf"], "l3_mb_per_chip"),
    "modules of 0 GB": ([*MACHINE, "--memory", "24 x 0 GB"], "memory (mem_total_gb) must be between 1"),
    "chips below 0": (["--processor", "Xeon Gold 6148", "--chips", "-2"], "chips"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_machine_is_refused(capsys, name):
    arguments, words = IMPOSSIBLE[name]
    refused(["predict", *arguments, "--champion", project().folder], capsys, words)


def test_repeated_vary_is_told(capsys):
    command = ["what-if", *MACHINE[:2], "--vary", "chips=1,2", "--vary", "chips=2,4", "--champion", project().folder]
    status, output = call(command, capsys)
    assert (status, "--vary chips is given 2 times" in output) == (0, True)


def test_given_result_id_is_told_to_be_ignored(capsys):
    assert main(["predict", *MACHINE, "--set", "result_id=x", "--champion", str(project().folder)]) == 0
    assert "result_id 'x' was ignored" in capsys.readouterr().out
