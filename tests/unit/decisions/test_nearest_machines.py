"""Measured machines like one's own: the nearest first, with what differs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from forecasting_project import SUITES, project

from perfcast.cli.main import main
from perfcast.decisions.nearest_machines import find_nearest_machines
from perfcast.inference import ParsedMachines, parse_machines, read_machines
from perfcast.inference.reference_data import describing_columns
from perfcast.utils.errors import UserError

GOLD = {"processor": "Xeon Gold 6148", "chips": 2}


def found(machines=GOLD, **asked):
    champion = project().champion
    return find_nearest_machines(parse_machines(read_machines(machines), champion), champion, **asked).machines


def measured_machine(row, **changed):
    """Return a measured machine, described by all that it was measured with."""
    champion = project().champion
    columns = [column.name for column in describing_columns(project().standard, ())]
    cells = champion.reference_data.measured.frame.iloc[[row]].assign(**changed)
    frame = cells.reindex(columns=list(champion.fields.columns))
    return ParsedMachines(frame[[name for name in frame if name in columns]].set_axis([1]), {})


def test_a_measured_machine_is_found_again_and_differs_only_in_what_was_not_stated():
    champion = project().champion
    frame = champion.reference_data.measured.frame
    again = 0
    for row in frame.isna().sum(axis=1).sort_values(kind="stable").index[:20]:
        try:
            machine = measured_machine(row)
            (one,) = find_nearest_machines(machine, champion, count=5, max_differences=99, assume=False).machines
        except UserError:  # the generated results have the published ones' mistakes
            continue
        assert {each.task for each in one.similar} == {frame["suite"][row]}
        itself = [each for each in one.similar if each.measured.result == frame["result_id"][row]]
        again += len(itself)
        assert all(one.theirs is None for each in itself for one in each.differences)
    assert again > 5


def test_every_task_has_its_results_the_nearest_first():
    (one,) = found(count=5)
    assert [each.task for each in one.similar] == [suite for suite in SUITES for _ in range(5)]
    for suite in SUITES:
        far = [each.measured.distance for each in one.similar if each.task == suite]
        assert far == sorted(far)
    frame = project().champion.reference_data.measured.frame.set_index("result_id")
    for each in one.similar:
        cells = frame.loc[each.measured.result]
        assert (each.measured.score, each.task) == (cells["base_score"], cells["suite"])
        assert each.measured.published == f"{cells['published_month']:%Y-%m}"


def test_differences_are_told_with_both_values_and_a_few_at_most():
    (one,) = found(count=4, tasks=["CINT2017rate"], max_differences=2)
    frame = project().champion.reference_data.measured.frame.set_index("result_id")
    assert any(each.differing > 2 for each in one.similar)
    for each in one.similar:
        assert len(each.differences) == min(2, each.differing)
        for difference in each.differences:
            theirs = frame.loc[each.measured.result, difference.column]
            assert difference.own != difference.theirs
            assert (difference.theirs is None and pd.isna(theirs)) or difference.theirs == theirs
            assert not (difference.assumed and difference.column in ("chips", "cpu_model"))


def test_what_was_said_is_no_assumption():
    (assumed,) = found(count=30, tasks=["CINT2017rate"], max_differences=50)
    named = {**GOLD, "os_name": "Plan 9"}
    (said,) = found(named, count=30, tasks=["CINT2017rate"], max_differences=50)
    marks = {
        name: {one.assumed for each in answer.similar for one in each.differences if one.column == "os_name"}
        for name, answer in (("assumed", assumed), ("said", said))
    }
    assert marks["said"] == {False} and marks["assumed"] <= {True}


def test_several_machines_and_their_own_tasks():
    answers = found([{**GOLD, "suite": "SPECrate2017_int_base"}, {**GOLD, "chips": 1}], count=1)
    assert [[each.task for each in one.similar] for one in answers] == [["CINT2017rate"], SUITES]
    again = found([GOLD, {**GOLD, "chips": 1}], count=2, tasks=["CFP2017rate", "CINT2017rate"])
    assert [one.machine for one in again] == ["2 x xeon gold 6148", "1 x xeon gold 6148"]
    assert [each.task for each in again[1].similar] == list(np.repeat(["CFP2017rate", "CINT2017rate"], 2))


def test_a_champion_without_calibration_cannot_say_what_is_near():
    bare = replace(project().champion, calibrated=None, neighbor_index=None)
    with pytest.raises(UserError, match="no calibration"):
        find_nearest_machines(parse_machines(read_machines(GOLD), bare), bare)


def test_the_command_prints_and_writes(tmp_path, capsys):
    given = ["similar", "--results", str(project().results), "--processor", "Xeon Gold 6148", "--count", "2"]
    assert main(given) == 0
    said = capsys.readouterr().out
    for words in ("measured machine", "distance", "published", "->", "note: "):
        assert words in said
    assert main([*given, "--json", "--task", "SPECspeed2017_fp_base"]) == 0
    (machine,) = json.loads(capsys.readouterr().out)["machines"]
    assert [each["task"] for each in machine["similar"]] == ["CFP2017speed"] * 2
    out = tmp_path / "similar.csv"
    assert main([*given, "--out", str(out)]) == 0
    assert len(pd.read_csv(out)) == 8


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--count", "0", "--chips", "2"], "--count must be between"),
        (["--chips", "2", "--task", "CINT2006rate"], "a task must be one of"),
        (["--chips", "2", "--out", "x.svg"], ".csv or .json"),
        ([], "a machine must be described"),
    ],
)
def test_the_command_tells_a_mistake_in_one_line(capsys, given, said):
    assert main(["similar", "--results", str(project().results), *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
