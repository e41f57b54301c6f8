"""Grids of varied machines: only varied fields change, and impossible machines are refused one by one."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest
from champion_project import TITLES, project
from generated_results import fake_table
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from machine_requests import requests

from perfcast.cli.main import main
from perfcast.decisions.criteria import Output, RankingRequest, read_constraint, read_criterion
from perfcast.decisions.display import format_grid
from perfcast.decisions.ranking import rank_machines
from perfcast.decisions.variants import MAX_COMBINATIONS, combinations, make_variants, read_varied_fields
from perfcast.decisions.what_if import predict_grid
from perfcast.experiment.champion import fit_all_rows
from perfcast.inference import Champion, MachineEntry, PredictOptions, parse_machines, read_machines
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_predictions import complete_machines
from perfcast.inference.predict import predict_machines
from perfcast.inference.reference_data import ReferenceData
from perfcast.inference.suites import Suites
from perfcast.predictors.linear import Ridge
from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.utils.errors import UserError

GOLD = {"processor": "Xeon Gold 6148", "chips": 2}
GOLD_ENTRY = MachineEntry(1, "the machine", GOLD)
PLAIN = PredictOptions(neighbors=0, explain=False)


def varied(*texts):
    return read_varied_fields(texts, project().champion.fields)


def made(machine, *texts):
    entry = MachineEntry(1, "the machine", {**machine, "suite": "CINT2017rate"})
    return make_variants(entry, varied(*texts), project().champion)


def complete(grid):
    """Return the completed frame of every combination that is possible."""
    imputed = impute_machines(grid.machines, project().champion)
    return imputed.completed.frame


def completed(grid):
    """Return every combination that is possible."""
    frame = complete(grid)
    return frame.groupby(frame.index).head(1)


def differing(grid):
    """Return the columns with several known values in the combinations."""
    frames = [frame.reset_index(drop=True).astype(object) for _, frame in complete(grid).groupby(level=0)]
    first = frames[0]
    return {
        name
        for name in first
        for other in frames
        if ((first[name] != other[name]) & first[name].notna() & other[name].notna()).any()
    }


VALUES = {
    "cores=8, 16,8.0": ["8", "16"],
    "cores=64..192:64": ["64", "128", "192"],
    "clock=2.0..2.6 GHz:0.2": ["2 GHz", "2.2 GHz", "2.4 GHz", "2.6 GHz"],
    "os=SLES 15 SP6, kernel 6.4|Ubuntu 22.04": ["SLES 15 SP6, kernel 6.4", "Ubuntu 22.04"],
    "memory=12 x 64 GB DDR5-6400,24 x 64 GB DDR5-6400": ["12 x 64 GB DDR5-6400", "24 x 64 GB DDR5-6400"],
}


def test_read_varied_fields_parses_lists_and_ranges_and_merges_repeated_names():
    assert {text: [point.text for point in varied(text)[0].points] for text in VALUES} == VALUES
    fields = varied("cores=8", "chips=1,2", "cores=16")
    made = [[point.text for point in combination] for combination in combinations(fields)]
    assert made == [["8", "1"], ["8", "2"], ["16", "1"], ["16", "2"]]
    assert [field.unit for field in varied("clock=2 GHz,3 GHz", "processor=Xeon Gold 6148")] == ["MHz", None]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["cores"], "NAME=VALUE"),
        (["clock=2..2.5:0.25 GHz"], "one unit"),
        (["coers=1"], "the nearest are cores"),
        (["cores=many"], "must be a number"),
        (["cores=9..3"], "from a lower to a higher"),
        (["clock=2.5..3.5"], "must have a step"),
        (["cores=1..100:1", "chips=1..32:1"], f"at most {MAX_COMBINATIONS}"),
        (["cores=4", "cores_per_chip=8"], "cores and cores_per_chip both describe cores as published"),
        (["os=SLES 15 SP6, kernel 6.4"], "join values by |"),
        (["memory=banana,1 TB"], "memory must be size and modules of memory"),
        (["os=banana,RHEL 9"], "values of --vary os must be understood whole"),
        (["chips=1..2:0.5"], "chips must be a whole number"),
        (["suite=CINT2017rate"], "--task"),
        (["family=Skylake-SP,Nonsense"], "family must be one that was measured"),
        (["processor=Xeon Gold 6148,Xeon Nonsense"], "processor must be a known CPU model"),
    ],
)
def test_read_varied_fields_refuses_invalid_texts(texts, words):
    """Others are in `tests/hostile/test_commands.py`."""
    with pytest.raises(UserError) as error:
        made(GOLD, *texts)
    assert words in str(error.value)


def test_variants_change_only_varied_and_implied_fields():
    assert differing(made(GOLD, "os_version=15.3,15.4")) <= {"os_version", "kernel_series"}
    assert differing(made(GOLD, "l3=20,40")) == {"l3_mb_per_chip"}
    assert differing(made(GOLD, "chips=1,2")) == {"chips", "cores_enabled_total", "dimm_count", "mem_total_gb"}
    cores = {"cores_per_chip_stated", "cores_enabled_total"}
    assert differing(made(GOLD, "cores=10,20")) == cores
    assert differing(made(GOLD, "cores=10,40")) == {*cores, "cores_per_chip_of_cpu_model"}
    channels = differing(made(GOLD, "memory.channels=4,6"))
    assert channels == {"mem_channels_per_chip", "dimm_count", "mem_total_gb"}


def test_variants_keep_given_fields_without_contradiction():
    machine = {**GOLD, "memory": "12 x 32 GB DDR4-2666", "cores_enabled_total": 32}
    frame = completed(made({**machine, "cores_enabled_total": 16}, "chips=1,2"))
    assert frame["dimm_count"].tolist() == [12, 12]
    assert frame["mem_total_gb"].tolist() == [384, 384]
    assert frame["cores_enabled_total"].tolist() == [16, 16]
    assert frame["cores_per_chip_of_cpu_model"].tolist() == [20, 20]
    whole = {"processor": "Xeon Gold 6148", "cores_enabled_total": 40}
    assert completed(made(whole, "chips=2"))["cores_enabled_total"].tolist() == [40]
    reasons = made(whole, "chips=1,2").reasons
    assert reasons[0].startswith("cores_enabled_total: 40 per chip is more than the 20")
    frame = completed(made(machine, "cores=8,12"))
    assert frame["cores_enabled_total"].tolist() == [16, 24]
    frame = completed(made(machine, "memory=12 x 32 GB DDR4-2666,24 x 16 GB DDR4-2666"))
    assert frame[["dimm_count", "dimm_gb", "mem_total_gb"]].to_numpy().tolist() == [[12, 32, 384], [24, 16, 384]]
    frame = completed(made(machine, "memory.total=384,768"))
    assert frame["dimm_gb"].tolist() == [32, 64]
    frame = completed(made({**machine, "mem_running_mts": 2400}, "memory.rate=2133,2666"))
    assert frame["mem_eff_mts"].tolist() == [2133, 2666]


def test_too_many_cores_make_a_hypothetical_cpu_model():
    real = made(GOLD, "cores=10,20")
    assert not real.base_entities and not real.notes
    assert completed(real)["cpu_model"].tolist() == ["xeon gold 6148"] * 2
    other = made(GOLD, "cores=20,40")
    assert other.base_entities == {1: "xeon gold 6148"}
    assert completed(other)["cpu_model"].isna().tolist() == [False, True]
    assert "xeon gold 6148 has its own cores" in other.notes[0]
    champion = project().champion
    facts = complete_machines(parse_machines(read_machines(GOLD), champion), champion, assume=False).frame
    for name in ("family", "l3_mb_per_chip", "base_mhz", "tdp_w", "mem_channels_per_chip"):
        assert completed(other)[name].tolist() == [facts[name].iloc[0]] * 2


@pytest.mark.parametrize(
    ("machine", "values", "others"),
    [(GOLD, "cores=16,20", "cores=40,20,16"), ({**GOLD, "cores": 20}, "memory.channels=6", "memory.channels=4,6,2")],
)
def test_combinations_do_not_change_with_the_others_in_the_list(machine, values, others):
    def estimates(text):
        grid = predict_grid(MachineEntry(1, "m", machine), varied(text), project().champion, options=PLAIN)
        return {tuple(each.values.values()): each.estimates for each in grid.combinations}

    few, many = estimates(values), estimates(others)
    assert len(many) > len(few)
    for combination, expected in few.items():
        assert many[combination] == expected


def test_hypothetical_cpu_model_is_predicted_like_its_base():
    champion = project().champion
    grid = predict_grid(GOLD_ENTRY, varied("cores=20,40"), champion, options=PLAIN)
    usual = predict_machines(read_machines(GOLD), Suites(champion), PLAIN).machines[0].estimates
    estimates = grid.combinations[0].estimates
    assert [estimate.task for estimate in estimates] == TITLES
    assert [estimate.median for estimate in estimates] == pytest.approx(
        [estimate.median for estimate in usual], rel=1e-9
    )
    assert all(after.in_domain_score <= before.in_domain_score for after, before in zip(estimates, usual, strict=True))


def test_varied_cpu_models_have_their_facts():
    measured = project().champion.reference_data.measured.frame
    cpu_models = measured.loc[measured["chips"] == 2, "cpu_model"].value_counts().index[:2].tolist()
    grid = made({"chips": 2}, "processor=" + "|".join(cpu_models), "chips=1,2")
    facts = project().champion.reference_data.entity_facts["family"]
    assert completed(grid)["cpu_model"].tolist() == [name for name in cpu_models for _ in (1, 2)]
    assert completed(grid)["family"].tolist() == [facts[name] for name in cpu_models for _ in (1, 2)]


def test_a_new_cpu_model_may_be_varied_and_does_not_change_with_the_list():
    new = {"processor": "Zeus 1", "clock": "2.5 GHz", "family": "Skylake-SP", "chips": 2}
    grid = made(new, "cores=16,32")
    assert completed(grid)["cores_enabled_total"].tolist() == [32, 64]
    assert not grid.base_entities
    described = {**new, "cores": 24}
    first, second = completed(made(described, "cores=16,32")).iloc[1], completed(made(described, "cores=32,48")).iloc[0]
    assert first.astype(str).tolist() == second.astype(str).tolist()


def test_impossible_combinations_are_refused_one_by_one():
    grid = predict_grid(GOLD_ENTRY, varied("chips=1,2,64"), project().champion, ["CINT2017rate"], PLAIN)
    assert [bool(combination.violation) for combination in grid.combinations] == [False, False, True]
    assert grid.combinations[2].violation == "chips: 64 is more than the 4 sockets that Xeon Gold 6148 supports"
    assert len(grid.possible) == 2
    assert grid.to_frame()["violation"].ne("").sum() == 1
    with pytest.raises(UserError, match="at least one combination"):
        predict_grid(GOLD_ENTRY, varied("chips=63,64"), project().champion, ["CINT2017rate"], PLAIN)


def test_what_if_command_prints_and_writes(tmp_path, capsys):
    command = ["what-if", "--results", str(project().results), "--processor", "Xeon Gold 6148", "--when", "2024-01"]
    command += ["--task", "SPECrate2017_int_base", "--vary", "chips=1,2,64", "--vary", "memory.channels=4,6"]
    assert main(command) == 0
    printed = capsys.readouterr()
    for words in (
        "memory.channels",
        "SPECrate2017_int_base",
        "cannot be (2 of 6 combinations)",
        "hypothetical CPU model like it",
    ):
        assert words in printed.out
    assert "SPECrate2017_fp_base" not in printed.out
    assert main([*command, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["combinations"]) == 6
    for name in ("a.csv", "a.json", "b.csv"):
        assert main([*command, "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert len(pd.read_csv(tmp_path / "a.csv")) == 6


def test_grid_and_ranking_of_a_dataset_without_rules():
    table = fake_table(rows=60, seed=0)
    frame = table.frame.assign(second=table.frame["score"].where(table.frame["suite"] == "float"))
    second = Column("second", Kind.NUMERICAL, Role.TARGET, "workload", "points")
    standard = build_table("fake", frame, (*table.columns, second))
    predictor = fit_all_rows(standard, lambda seed: Ridge(), 0, None)
    champion = Champion("fake", "ridge", "quick", (), predictor, ReferenceData(standard, pd.DataFrame()))
    entries = read_machines([{"part": "part 001", "chips": 1}, {"part": "part 001", "chips": 2, "watts": 3}])
    grid = predict_grid(entries[0], read_varied_fields(["chips=1,2"], champion.fields), champion, options=PLAIN)
    assert list(grid.outputs.values()) == ["float score", "float second", "integer"]
    text = format_grid(grid)
    assert "float second" in text and "interval" not in text
    request = RankingRequest(read_criterion("float.second", Suites(champion)), {Output("integer", "score"): 1.0})
    ranking = rank_machines(entries, Suites(champion), request)
    assert [(candidate.line, candidate.watts, candidate.score_low) for candidate in ranking.candidates] == [
        (2, 3, None),
        (1, None, None),
    ]
    with pytest.raises(UserError, match="--target must name the target of float"):
        read_constraint("float >= 3", Suites(champion))
    with pytest.raises(UserError, match=r"needs the watts of every candidate.*candidate 1"):
        by_watt = replace(request, criterion=read_criterion("score/watt", Suites(champion)))
        rank_machines(entries, Suites(champion), by_watt, strict=True)
    ranking = rank_machines(entries, Suites(champion), by_watt)
    assert [candidate.line for candidate in ranking.candidates] == [2]
    assert [(refused.line, "needs the watts" in refused.message) for refused in ranking.refused] == [(1, True)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--chips", "2"], "something must be varied"),
        ([], "no file, no flag"),
        (["--chips", "2", "--vary", "cores=2", "--task", "CINT2006rate"], "a task must be one of"),
        (["--chips", "2", "--vary", "cores=2", "--out", "x.png"], ".csv or .json"),
        (["nowhere.yaml", "--vary", "cores=2"], "no file nowhere.yaml"),
    ],
)
def test_what_if_command_reports_mistakes_in_one_line(capsys, options, words):
    assert main(["what-if", "--results", str(project().results), *options]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@given(machine=requests(), chips=st.sampled_from([None, 1, 2]))
@settings(max_examples=8, deadline=None, phases=[Phase.reuse, Phase.generate])
def test_a_combination_that_changes_nothing_is_the_machine_itself(machine, chips):
    champion = project().champion
    entry = MachineEntry(1, "the machine", machine if chips is None else {**machine, "chips": chips})
    try:
        predicted = predict_machines([entry], Suites(champion), PLAIN).machines
    except UserError:
        assume(False)
    # what the description says already, or what each line of the answer says
    name = "processor" if "processor" in machine else "clock"
    grid = predict_grid(entry, varied(f"{name}={machine[name]}"), champion, options=PLAIN)
    assert [each.estimates for each in grid.possible] == [each.estimates for each in predicted]


def test_what_if_answers_for_each_number_of_processors():
    champion = project().champion
    entry = MachineEntry(1, "m", {"processor": GOLD["processor"]})
    grid = predict_grid(entry, varied("cores=16,20"), champion, options=PLAIN)
    assert [each.values for each in grid.combinations] == [
        {"chips": chips, "cores": cores} for chips in ("1", "2", "4") for cores in ("16", "20")
    ]
    assert (
        grid.combinations[3].estimates == predict_machines([GOLD_ENTRY], Suites(champion), PLAIN).machines[0].estimates
    )
