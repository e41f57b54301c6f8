"""Corrections of predictions by a few scores that the user measured."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest
from champion_project import SUITES, predict_parsed, project
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.cli.main import main
from perfcast.inference import PredictOptions, parse_machines, read_machines
from perfcast.inference.user_measurements import read_measurements
from perfcast.utils.errors import UserError

MACHINE = {"processor": "Xeon Gold 6148", "chips": 2}
PLAIN = PredictOptions(neighbors=0, explain=False)


def predict_corrected(measured, machine=MACHINE, options=PLAIN):
    champion = project().champion
    measurements = read_measurements(read_machines(measured), champion, machine)
    return predict_parsed(parse_machines(read_machines(machine), champion), champion, options, [measurements]).machines[
        0
    ]


@cache
def before():
    champion = project().champion
    machine = predict_parsed(parse_machines(read_machines(MACHINE), champion), champion, PLAIN).machines[0]
    return {estimate.task: estimate for estimate in machine.estimates}


def after(measured):
    return {estimate.task: estimate for estimate in predict_corrected(measured).estimates}


def test_measured_score_shifts_and_narrows_predictions():
    score = 1.2 * before()["CINT2017rate"].median
    corrected = after({"suite": "CINT2017rate", "score": score})
    assert list(corrected) == SUITES
    assert before()["CINT2017rate"].median < corrected["CINT2017rate"].median < score
    for task in SUITES:
        assert corrected[task].user_factor == pytest.approx(corrected[task].median / before()[task].median)
        assert corrected[task].high / corrected[task].low <= before()[task].high / before()[task].low
    assert corrected["CINT2017rate"].user_factor == max(estimate.user_factor for estimate in corrected.values())
    other_names = {"task": "CINT2017rate", "base_score": str(score), "tester": "me", "peak_score": 120}
    assert after(other_names) == corrected
    sibling = {"processor": "Xeon Gold 6148", "chips": 1, "suite": "CINT2017rate", "score": 100}
    assert after(sibling) != after({**sibling, "score": 120})


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(SUITES), st.floats(0.4, 2.5))
def test_a_measured_suite_moves_no_other_away_from_its_published_results(suite, factor):
    corrected = after({"suite": suite, "score": factor * before()[suite].median})
    assert any(estimate.published for estimate in corrected.values())
    for task, estimate in corrected.items():
        moved = estimate.median - before()[task].median
        if task == suite:
            assert moved * (factor - 1) >= 0
        elif estimate.published:
            assert moved * (estimate.published.median - before()[task].median) >= -1e-9


def test_implausible_measurement_gets_a_note():
    plausible = predict_corrected({"suite": "CINT2017rate", "score": before()["CINT2017rate"].median})
    assert not any("times its prediction" in note for note in plausible.notes)


def test_measurements_without_a_task_or_of_another_dataset_are_refused():
    """Others are in `tests/hostile/test_machine_files.py`."""
    for measured, words in (
        ({"score": 100}, "must name its task"),
        ({"suite": SUITES[0], "score": 1, "bytes": 3}, "'b"),
    ):
        with pytest.raises(UserError, match=words):
            predict_corrected(measured)


COMMANDS = {
    "predict": ["--processor", "Xeon Gold 6148", "--chips", "2"],
    "predict --csv": ["--processor", "Xeon Gold 6148", "--chips", "2", "--csv"],
    "compare": ["two.csv", "--csv"],
    "rank": ["two.csv", "--csv"],
}


def test_absurd_measured_score_is_named_by_every_command_whatever_the_form_of_the_answer(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("processor,chips,suite,score\nXeon Gold 6148,2,CINT2017rate,100000\n")
    (tmp_path / "two.csv").write_text("processor,chips\nXeon Gold 6148,1\nXeon Gold 6148,2\n")
    common = ["--champion", str(project().folder), "--measured", "mine.csv"]
    for command, options in COMMANDS.items():
        assert main([command.split()[0], *options, *common]) == 0
        shown = capsys.readouterr()
        assert "other compiler options, or a typo?" in shown.err, command
        assert command != "predict" or "changed by your own measurements: SPECrate2017_int_base from" in shown.out


def test_rank_and_what_if_correct_by_measurements(tmp_path, capsys):
    measured = {**MACHINE, "suite": "CINT2017rate", "score": 1.2 * before()["CINT2017rate"].median}
    pd.DataFrame([measured]).to_csv(tmp_path / "mine.csv", index=False)
    this_month = replace(PLAIN, when=pd.Timestamp.now().normalize())
    expected = predict_corrected(measured, options=this_month).estimates[2]
    pd.DataFrame([MACHINE]).to_csv(tmp_path / "candidates.csv", index=False)
    commands = {
        "rank": [str(tmp_path / "candidates.csv"), "--target", "CINT2017rate >= 1"],
        "what-if": ["--processor", "Xeon Gold 6148", "--chips", "2", "--vary", "chips=2", "--task", "CINT2017rate"],
    }
    answers = {}
    for name, options in commands.items():
        common = ["--champion", str(project().folder), "--measured", str(tmp_path / "mine.csv"), "--json"]
        assert main([name, *options, *common]) == 0
        answers[name] = json.loads(capsys.readouterr().out)
    (combination,) = answers["what-if"]["combinations"]
    # what is not varied is held as it was completed for the task, so this is not quite the machine of the others
    assert combination["estimates"][0]["user_factor"] == pytest.approx(expected.user_factor, rel=0.02)
    assert answers["rank"]["candidates"][0]["score"] == pytest.approx(expected.median)
