"""Nearest measured machines of a described one, with their differences."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import SUITES, make_machines, project

from perfcast.cli.main import main
from perfcast.decisions.nearest_machines import find_nearest_machines
from perfcast.domains.servers.server_rules import SPEC_CPU2017
from perfcast.inference import parse_machines, read_machines
from perfcast.inference.reference_data import describing_columns
from perfcast.utils.errors import UserError

GOLD = {"processor": "Xeon Gold 6148", "chips": 2}
TITLES = SPEC_CPU2017.names.task_titles


def find_nearest(machines=GOLD, **options):
    champion = project().champion
    return find_nearest_machines(parse_machines(read_machines(machines), champion), champion, **options).machines


def measured_machine(row, **changed):
    """Return a measured machine, described by all that it was measured with."""
    champion = project().champion
    columns = [column.name for column in describing_columns(project().standard, ())]
    cells = champion.reference_data.measured.frame.iloc[[row]].assign(**changed)
    frame = cells.reindex(columns=list(champion.fields.columns))
    return make_machines(frame[[name for name in frame if name in columns]].set_axis([1]))


def test_find_nearest_machines_finds_a_measured_machine_itself():
    champion = project().champion
    frame = champion.reference_data.measured.frame
    again = 0
    for row in frame.isna().sum(axis=1).sort_values(kind="stable").index[:10]:
        try:
            machine = measured_machine(row)
            (answer,) = find_nearest_machines(machine, champion, count=5, max_differences=99, assume=False).machines
        except UserError:  # the generated results have the published ones' mistakes
            continue
        assert {similar.task for similar in answer.similar} == {TITLES[frame["suite"][row]]}
        itself = [similar for similar in answer.similar if similar.measured.result == frame["result_id"][row]]
        again += len(itself)
        assert all(difference.measured is None for similar in itself for difference in similar.differences)
    assert again > 2


def test_find_nearest_machines_sorts_each_task_by_distance():
    (answer,) = find_nearest(count=5)
    assert [similar.task for similar in answer.similar] == [TITLES[suite] for suite in SUITES for _ in range(5)]
    for suite in TITLES.values():
        far = [similar.measured.distance for similar in answer.similar if similar.task == suite]
        assert far == sorted(far)
    frame = project().champion.reference_data.measured.frame.set_index("result_id")
    for similar in answer.similar:
        cells = frame.loc[similar.measured.result]
        assert (similar.measured.score, similar.task) == (cells["base_score"], TITLES[cells["suite"]])
        assert similar.measured.published == f"{cells['published_month']:%Y-%m}"


def test_differences_have_both_values_and_a_limit():
    (answer,) = find_nearest(count=4, tasks=["CINT2017rate"], max_differences=2)
    frame = project().champion.reference_data.measured.frame.set_index("result_id")
    assert any(similar.differing > 2 for similar in answer.similar)
    for each in answer.similar:
        assert len(each.differences) == min(2, each.differing)
        for difference in each.differences:
            expected = frame.loc[each.measured.result, difference.column]
            assert difference.described != difference.measured
            assert (difference.measured is None and pd.isna(expected)) or difference.measured == expected
            assert not (difference.assumed and difference.column in ("chips", "cpu_model"))

    def marks(machine):
        (answer,) = find_nearest(machine, count=30, tasks=["CINT2017rate"], max_differences=50)
        every = [difference for similar in answer.similar for difference in similar.differences]
        return {difference.assumed for difference in every if difference.column == "os_name"}

    assert marks({**GOLD, "os_name": "Plan 9"}) == {False} and marks(GOLD) <= {True}


def test_find_nearest_machines_uses_the_tasks_of_each_machine():
    answers = find_nearest([{**GOLD, "suite": "SPECrate2017_int_base"}, {**GOLD, "chips": 1}], count=1)
    assert [[similar.task for similar in answer.similar] for answer in answers] == [
        ["SPECrate2017_int_base"],
        [TITLES[suite] for suite in SUITES],
    ]
    again = find_nearest([GOLD, {**GOLD, "chips": 1}], count=2, tasks=["CFP2017rate", "CINT2017rate"])
    assert [answer.machine for answer in again] == ["2 x xeon gold 6148", "1 x xeon gold 6148"]
    assert [similar.task for similar in again[1].similar] == list(
        np.repeat(["SPECrate2017_fp_base", "SPECrate2017_int_base"], 2)
    )


def test_find_nearest_machines_needs_a_calibration():
    bare = replace(project().champion, calibrated=None, neighbor_index=None)
    with pytest.raises(UserError, match="no calibration"):
        find_nearest_machines(parse_machines(read_machines(GOLD), bare), bare)


def test_similar_command_prints_and_writes(tmp_path, capsys):
    command = ["similar", "--results", str(project().results), "--processor", "Xeon Gold 6148", "--count", "2"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    for words in ("measured machine", "distance", "published", "->", "note: "):
        assert words in printed
    assert main([*command, "--json", "--task", "SPECspeed2017_fp_base"]) == 0
    machines = json.loads(capsys.readouterr().out)["machines"]
    assert [machine["machine"][:4] for machine in machines] == ["1 x ", "2 x ", "4 x "]
    assert [similar["task"] for machine in machines for similar in machine["similar"]] == ["SPECspeed2017_fp_base"] * 6
    out = tmp_path / "similar.csv"
    assert main([*command, "--out", str(out)]) == 0
    assert len(pd.read_csv(out)) == 24
