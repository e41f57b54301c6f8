"""Champions that rest on the estimates of another dataset's champion: features of described machines, and answers."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from bridged_project import DATASET, LATER, bridged_results
from champion_project import KNOWN, TITLES

from perfcast.cli.main import main
from perfcast.domains.servers.processors.announcements import find_core, find_core_family
from perfcast.inference.champion_files import load_champion
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_files import read_machines
from perfcast.inference.parse import parse_batch


@pytest.fixture(scope="module")
def results():
    """Results with the champion of the generated SPEC CPU2017, and one of SPEC CPU2026 that rests on it."""
    return bridged_results()


def run(capsys, *arguments):
    code = main(["predict", "--processor", KNOWN["processor"], "--chips", "2", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("suite", "expected"), [((), TITLES + LATER), (("--suite", "2026"), LATER), (("--suite", "2017"), TITLES)]
)
def test_predict_answers_by_every_champion_that_rests_on_the_first(results, capsys, suite, expected):
    code, out, _ = run(capsys, "--results", results, "--json", *suite)
    [machine] = json.loads(out)["machines"]
    assert code == 0
    assert sorted(each["task"] for each in machine["estimates"]) == sorted(expected)


def test_a_task_is_answered_by_the_champion_that_knows_it(results, capsys):
    code, out, err = run(capsys, "--results", results, "--task", LATER[0], "--brief")
    assert (code, LATER[0] in out, TITLES[0] in out) == (0, True, False)
    assert "no answer" not in err


def test_an_unknown_suite_is_refused_in_one_line(results, capsys):
    code, _, err = run(capsys, "--results", results, "--suite", "2010")
    assert (code, err.count("\n")) == (2, 1)
    assert "--suite must be both or the end of a dataset" in err


def test_rows_have_an_estimate_near_their_score(results):
    """The machines of both generated dumps follow the same formula; a few are of no known design."""
    champion = load_champion(results / "champion" / DATASET)
    frame = champion.reference_data.measured.frame
    estimates = champion.base.estimate(frame)
    known = estimates["cpu2017_estimate"].notna()
    assert known.mean() > 0.95
    assert (estimates["cpu2017_low"] < estimates["cpu2017_estimate"])[known].all()
    assert (estimates["cpu2017_high"] > estimates["cpu2017_estimate"])[known].all()
    ratio = frame[champion.predictor.targets_[0]] / estimates["cpu2017_estimate"]
    assert np.median(np.abs(np.log(ratio[known]))) < 0.1


def test_a_task_without_another_has_no_estimate(results):
    champion = load_champion(results / "champion" / DATASET)
    frame = champion.reference_data.measured.frame.head(8)
    first = str(frame[champion.task].iloc[0])
    fewer = replace(champion.base, tasks={name: task for name, task in champion.base.tasks.items() if name != first})
    missing = fewer.estimate(frame)["cpu2017_estimate"].isna()
    assert missing.tolist() == (frame[champion.task].astype(str) == first).tolist()


def test_a_copied_champion_needs_no_other_folder(results, tmp_path):
    copy = shutil.copytree(results / "champion" / DATASET, tmp_path / "copy")
    champion = load_champion(copy, DATASET)
    assert champion.base.champion.dataset == "spec_cpu2017"
    assert any(column.name == "log_cpu2017_estimate" for column in champion.predictor.columns_)


def test_the_core_of_a_described_machine_is_known(results):
    """Levels of the core would be unknown otherwise, although rows have it."""
    champion = load_champion(results / "champion" / DATASET)
    cells = impute_machines(parse_batch(read_machines(KNOWN), champion), champion).completed.cells
    assert {*cells["generation"].tolist()} == {find_core(str(cells["family"][0]))}
    assert {*cells["core_family"].tolist()} == {find_core_family(find_core(str(cells["family"][0])))} - {None}


def test_a_field_without_a_column_has_no_type(results):
    """MLflow's signature lists the others: SPEC CPU2026 states no storage."""
    types = load_champion(results / "champion" / DATASET).field_types()
    assert types["chips"] == "double"
    assert "storage" not in types
