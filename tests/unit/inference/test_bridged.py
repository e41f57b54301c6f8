"""Answers of a champion and of one that rests on it: one draw, ratios, measurements across, and every command."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from bridged_project import DATASET, LATER, bridged_pair, bridged_results
from champion_project import KNOWN, NOTICE, SUITES, TITLES, project
from hypothesis import given, settings
from hypothesis import strategies as st

import perfcast
from perfcast.cli.main import main
from perfcast.decisions.what_if import predict_grids
from perfcast.domains.servers.server_rules import SPEC_CPU2026
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_files import read_machines
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import predict_machines
from perfcast.inference.prediction import cap_trust
from perfcast.inference.suites import Suites, parse_suites, read_measured
from perfcast.utils.errors import UserError

PLAIN = PredictOptions(neighbors=0, explain=False)


def without(entity):
    """Return the pair without the results of an entity behind the base."""
    pair = bridged_pair()
    data = pair.first.reference_data
    frame = data.measured.frame
    measured = replace(data.measured, frame=frame[frame[pair.first.entity] != entity].reset_index(drop=True))
    base = replace(pair.first, reference_data=replace(data, measured=measured))
    bridge = replace(pair.last.base, champion=base)
    return Suites(base, replace(pair.last, base=bridge))


def answer(machine, measured=None, pair=None, options=PLAIN):
    pair, entries = pair or bridged_pair(), read_machines(machine)
    known = read_measured(read_machines(measured), pair, machine) if measured else (None, None)
    [prediction] = predict_machines(entries, pair, options, known).machines
    return prediction


def scores(prediction):
    return {each.task: each for each in prediction.estimates}


def test_a_machine_has_the_estimates_of_both_and_their_ratios():
    prediction = answer(KNOWN)
    assert sorted(scores(prediction)) == sorted(TITLES + LATER)
    assert [(each.task, each.base_task) for each in prediction.ratios] == list(zip(LATER, TITLES, strict=True))


def test_the_later_suite_stands_first_in_every_form(capsys):
    options = ["predict", "--processor", KNOWN["processor"], "--chips", "2", "--results", str(bridged_results())]
    assert main([*options, "--brief"]) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if "ratio to reference" in line]
    assert [title in line for title, line in zip(LATER + TITLES, table, strict=True)] == [True] * len(table)
    assert main([*options, "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    assert [each["task"] for each in answered["machines"][0]["estimates"]] == LATER + TITLES
    assert answered["dataset"] == f"{DATASET}, spec_cpu2017"
    assert [(each["dataset"], each["retrieved"]) for each in answered["bases"]] == [
        (DATASET, "2026-06-19"),
        ("spec_cpu2017", "2026-03"),
    ]


def test_the_interval_of_a_ratio_is_narrower_than_that_of_two_intervals():
    prediction = answer(KNOWN)
    by_task = scores(prediction)
    for ratio in prediction.ratios:
        new, old = by_task[ratio.task], by_task[ratio.base_task]
        assert ratio.low < ratio.median < ratio.high
        assert ratio.median == pytest.approx(new.median / old.median, rel=0.05)
        assert ratio.high / ratio.low < (new.high / old.low) / (new.low / old.high)


ENTITIES = sorted(project().standard.frame["cpu_model"].dropna().unique())


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(ENTITIES), min_size=1, max_size=4, unique=True))
def test_both_assume_the_same_hardware_whichever_has_results(entities):
    pair = bridged_pair()
    sides = parse_suites(read_machines([{"processor": entity} for entity in entities]), pair)
    base, bridged = (impute_machines(side, champion) for side, champion in zip(sides, pair, strict=True))
    joint, of_base, of_bridged = pair.first.rules.typical_values.joint, base.completed.cells, bridged.completed.cells
    hardware = ({*joint.taken} - {*joint.software, joint.day}) & {*of_base} & {*of_bridged}
    assert "dimm_count" in hardware
    places = {key: row for row, key in enumerate(zip(of_base.index, of_base[pair.first.task], strict=True))}
    tasks = pair.base_tasks
    matched = [
        (row, places[key, tasks[task]])
        for row, (key, task) in enumerate(zip(of_bridged.index, of_bridged[pair.last.task], strict=True))
        if (key, tasks.get(task)) in places
    ]
    assert matched
    for row, place in matched:
        for name in hardware:
            value, other = of_bridged[name][row], of_base[name][place]
            assert value == other or (value != value and other != other), name


@settings(max_examples=5, deadline=None)
@given(st.lists(st.sampled_from(ENTITIES), min_size=2, max_size=5, unique=True))
def test_a_machine_has_the_same_answer_in_any_batch(entities):
    machines = [{"processor": entity} for entity in entities]
    together = predict_machines(read_machines(machines), bridged_pair(), PLAIN).machines
    alone = [each for machine in machines for each in predict_machines(read_machines(machine), bridged_pair(), PLAIN)]
    for first, second in zip(together, alone, strict=True):
        assert [each.task for each in first.ratios] == [each.task for each in second.ratios]
        for name in ("estimates", "ratios"):
            medians = [[each.median for each in getattr(made, name)] for made in (first, second)]
            assert medians[0] == pytest.approx(medians[1], rel=1e-9)


def test_one_suite_alone_has_the_answer_of_its_champion(capsys):
    results = bridged_results()
    entries = read_machines(KNOWN)
    for suite, champion in zip(("2017", "2026"), bridged_pair(), strict=True):
        options = ["predict", "--processor", KNOWN["processor"], "--chips", "2", "--results", str(results)]
        assert main([*options, "--suite", suite, "--json", "--brief"]) == 0
        [machine] = json.loads(capsys.readouterr().out)["machines"]
        [expected] = predict_machines(entries, Suites(champion), replace(PLAIN, explain=True, neighbors=3)).machines
        assert [each["median"] for each in machine["estimates"]] == [each.median for each in expected.estimates]
        assert machine["ratios"] == []


def test_a_machine_that_one_champion_refuses_has_the_answer_of_the_other():
    pair = bridged_pair()
    with_task = answer({**KNOWN, "task": "CINT2026rate"})
    assert [list(scores(with_task)), with_task.ratios, with_task.notes[-1:]] == [[LATER[2]], (), with_task.notes[-1:]]
    assert not any("no answer" in note for note in with_task.notes)
    lines = read_machines([KNOWN, {"processor": "nonsense"}])
    known, refused = predict_machines(lines, pair, PLAIN).machines
    assert (known.status, refused.status) == ("ok", "refused")
    with pytest.raises(UserError, match="nonsense"):
        predict_machines(lines, pair, PLAIN, strict=True)


def test_a_result_of_the_base_moves_an_entity_that_the_base_has_not_seen():
    later = {*bridged_pair().last.reference_data.measured.frame["cpu_model"]}
    entity = next(each for each in ENTITIES if each not in later)
    machine, pair = {"processor": entity, "chips": 1}, without(entity)
    before = scores(answer(machine, pair=pair))
    after = scores(answer(machine, {"task": SUITES[2], "score": 1.2 * before[TITLES[2]].median}, pair))
    base, carried = (np.log(after[task].median / before[task].median) for task in (TITLES[2], LATER[2]))
    assert base > 0
    assert carried == pytest.approx(SPEC_CPU2026.limits.carried * base)
    assert after[LATER[2]].user_factor == pytest.approx(np.exp(carried))


def test_a_result_of_the_base_moves_no_entity_that_the_base_has_seen():
    before = scores(answer(KNOWN))
    after = answer(KNOWN, {"task": SUITES[2], "score": 1.2 * before[TITLES[2]].median})
    assert scores(after)[TITLES[2]].median > before[TITLES[2]].median
    assert [scores(after)[task].median for task in LATER] == [before[task].median for task in LATER]
    assert any(note.startswith(f"{DATASET} is not moved by your results of spec_cpu2017") for note in after.notes)


def test_a_later_result_moves_its_own_suite_alone_and_says_so():
    before = scores(answer(KNOWN))
    after = answer(KNOWN, {"task": LATER[2], "score": 1.2 * before[LATER[2]].median})
    assert scores(after)[LATER[2]].median > before[LATER[2]].median
    assert [scores(after)[task].median for task in TITLES] == [before[task].median for task in TITLES]
    assert any(note.startswith(f"spec_cpu2017 is not moved by your results of {DATASET}") for note in after.notes)


def test_a_measured_task_of_neither_is_refused(tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("task,score\nSPECrate2010_int_base,100\n")
    options = ["--processor", KNOWN["processor"], "--measured", str(tmp_path / "mine.csv")]
    assert main(["predict", *options, "--results", str(bridged_results())]) == 2
    refusal = capsys.readouterr().err
    assert refusal.count("\n") == 1 and "CINT2017rate" in refusal and "CINT2026rate" in refusal


COMMANDS = {
    "predict": ("--processor", KNOWN["processor"], "--chips", "1"),
    "compare": (f"1 x {KNOWN['processor']}", f"2 x {KNOWN['processor']}"),
    "rank": ("candidates.csv", "--target", f"{LATER[2]} >= 10", "--target", f"{TITLES[2]} >= 10"),
    "what-if": ("--processor", KNOWN["processor"], "--vary", "chips=1,2"),
    "similar": ("--processor", KNOWN["processor"], "--chips", "1", "--count", "1"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_answers_in_both_suites(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "candidates.csv").write_text(f"processor,chips\n{KNOWN['processor']},1\n{KNOWN['processor']},2\n")
    common = ["--results", str(bridged_results()), "--suite", "both"]
    for form in ((), ("--json",), ("--csv",)):
        assert main([command, *COMMANDS[command], *common, *form]) == 0
        shown = capsys.readouterr()
        for title in (LATER[2], TITLES[2]):
            assert title in shown.out, form
        if command != "similar":
            assert NOTICE in " ".join(shown.out.split()) or form == ("--csv",)
        assert DATASET in shown.out + shown.err or command != "similar"


def test_the_text_has_ratios_and_the_results_behind_each_suite(capsys):
    options = ["--processor", KNOWN["processor"], "--chips", "2", "--results", str(bridged_results())]
    assert main(["predict", *options]) == 0
    out = capsys.readouterr().out
    later, first = (len(each.reference_data.measured.frame) for each in reversed(bridged_pair()))
    assert "ratio to older suite" in out
    (line,) = [line for line in out.splitlines() if LATER[2] in line and "ratio to reference" in line]
    assert re.search(r"\d, [\d.]+ to [\d.]+$", line.strip())
    out = " ".join(out.split())
    assert f"basis: {DATASET}: bridged from spec_cpu2017, {later} results to 2026-06" in out
    assert f"spec_cpu2017: {first} results to" in out
    assert "published results are of" in out
    assert "https://www.spec.org/cpu2017/results/, retrieved 2026-03" in out
    assert f"note: {NOTICE}" in out


def test_rank_refuses_a_candidate_that_one_champion_cannot_use():
    pair = bridged_pair()
    champion = perfcast.load_champion(bridged_results() / "champion" / DATASET)
    ranking = champion.rank([KNOWN, {"processor": "nonsense"}, {**KNOWN, "chips": 1}], suite="both")
    assert [len(ranking.candidates), len(ranking.refused)] == [2, 1]
    assert {*ranking.weights} == {*TITLES, *LATER}
    assert ranking.dataset == f"{pair.last.dataset}, {pair.first.dataset}"


def test_a_grid_of_one_suite_is_that_of_its_champion():
    entries = read_machines({"processor": KNOWN["processor"]})
    both, alone = (
        predict_grids(entries[0], ["chips=1,2"], champions, ["CINT2026rate"])
        for champions in (bridged_pair(), Suites(bridged_pair().last))
    )
    assert both == alone


def test_python_answers_in_both_suites_when_asked():
    champion = perfcast.load_champion(bridged_results() / "champion" / DATASET)
    both = perfcast.predict(KNOWN, champion, suite="both", explain=False)
    assert both.machines[0].estimates == answer(KNOWN, options=replace(PLAIN, neighbors=3)).estimates
    assert [each.dataset for each in both.bases] == [DATASET, "spec_cpu2017"]
    assert {each.task for each in champion.predict(KNOWN).machines[0].estimates} == {*LATER}
    comparison = champion.compare([KNOWN, {**KNOWN, "chips": 1}], suite="both")
    assert {pair.task for pair in comparison.pairs} == {*TITLES, *LATER}
    assert {each.task for each in champion.similar(KNOWN, suite="both").machines[0].similar} <= {*TITLES, *LATER}
    with pytest.raises(UserError, match="rests on another"):
        perfcast.predict(KNOWN, project().champion, suite="both")
    with pytest.raises(UserError, match="suite must be"):
        champion.predict(KNOWN, suite="2010")


def test_ratios_are_columns_of_the_later_suite_in_csv():
    frame = perfcast.predict(
        KNOWN, perfcast.load_champion(bridged_results() / "champion" / DATASET), suite="both"
    ).to_frame()
    assert frame["task"].tolist() == LATER + TITLES
    assert frame["ratio_to"].fillna("").tolist() == TITLES + [""] * len(TITLES)
    assert (frame["ratio_low"] < frame["ratio"])[: len(LATER)].all()


@pytest.mark.parametrize(("targets", "dataset"), [([LATER[2]], DATASET), ([TITLES[2]], "spec_cpu2017")])
def test_a_target_chooses_its_suite(tmp_path, capsys, targets, dataset):
    (tmp_path / "some.csv").write_text(f"processor,chips\n{KNOWN['processor']},1\n{KNOWN['processor']},2\n")
    words = [word for target in targets for word in ("--target", f"{target} >= 10")]
    assert main(["rank", str(tmp_path / "some.csv"), *words, "--results", str(bridged_results()), "--json"]) == 0
    ranking = json.loads(capsys.readouterr().out)
    assert (ranking["dataset"], [*ranking["weights"]]) == (dataset, targets)


def test_a_cpu_model_that_neither_suite_measured_is_never_of_high_trust():
    pair = bridged_pair()
    cells = {pair.first.entity: "a model of nobody", "cpu_model_id": None, "family": None, "cpu_vendor": None}
    assert pair.last.limit_trust(cells) == "CPU model measured in neither suite"
    for champion in pair:
        measured = {**cells, champion.entity: next(iter(champion.measured_entities))}
        assert pair.last.limit_trust(measured) == ""
    assert cap_trust("high", "a reason") == "fair: a reason"
    assert cap_trust("low: few results", "a reason") == "low: few results"
