"""Rankings: calibrated probabilities, stable orders, no dominated candidate above, one line for invalid input."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from champion_project import FEATURES, project
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.cli.main import main
from perfcast.decisions.criteria import (
    EXPENSES,
    SCORE,
    Constraint,
    Output,
    RankingRequest,
    Spread,
    evaluate_criterion,
    read_candidate,
    read_constraint,
    read_criterion,
    read_request,
)
from perfcast.decisions.display import format_ranking
from perfcast.decisions.ranking import Ranked, rank_machines, sort_candidates
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import build
from perfcast.domains.servers.testing import spec_cpu2017
from perfcast.inference import PredictOptions, read_machines
from perfcast.inference.champion import build_features
from perfcast.inference.name_lookup import TaskNames
from perfcast.inference.rules.presentation import DerivedOutput
from perfcast.inference.suites import Suites
from perfcast.uncertainty.conformal import LEVEL, probability_at_least
from perfcast.uncertainty.levels import outputs_of
from perfcast.utils.errors import UserError

INT, FP = Output("CINT2017rate", "base_score"), Output("CFP2017rate", "base_score")
MACHINES = [
    {"processor": "Xeon Gold 6148", "chips": 1, "name": "small", "price": 1000},
    {"processor": "Xeon Gold 6148", "chips": 2, "name": "large", "price": 1500, "watts": 2000},
]


def make_request(by="score", targets=(), **more):
    return read_request(targets, Suites(project().champion), by=by, **more)


def ranked(machines=MACHINES, **options):
    return rank_machines(read_machines(machines), Suites(project().champion), make_request(**options))


def test_pit_of_unseen_results_is_uniform():
    """The probability to reach what was then measured is a probability integral transform."""
    folder = Path(mkdtemp(prefix="perfcast-choosing-"))
    spec_cpu2017.write(folder, rows=400, seed=6)
    standard = build({"spec_cpu2017": folder}, {}).table
    champion = project().champion
    X = build_features("spec_cpu2017", standard.frame, standard.columns, FEATURES).frame
    predictions = champion.predictor.predict(X)["base_score"].to_numpy()
    outputs = outputs_of(X["suite"], "base_score")
    below, above = champion.calibrated.intervals(X, outputs)[["below", "above"]].to_numpy().T
    middle, half_width = predictions * np.exp((above - below) / 2), (above + below) / 2
    quantiles = champion.calibrated.calibration.quantiles
    reached = [
        probability_at_least(score, median, median * np.exp(wide), LEVEL, quantiles.get(output, quantiles[""]))
        for score, median, wide, output in zip(X["base_score"], middle, half_width, outputs, strict=True)
    ]
    apart = np.abs(np.sort(reached) - (np.arange(len(reached)) + 0.5) / len(reached)).max()
    assert apart < 0.15
    assert np.mean(np.abs(np.array(reached) - 0.5) < 0.45) == pytest.approx(0.9, abs=0.06)


def test_read_constraint_accepts_published_task_names():
    names = project().champion.task_names
    assert names.find("SPECrate2017_int_base") == names.find("cint2017RATE") == "CINT2017rate"
    assert names.find("SPECspeed2017 fp base") == "CFP2017speed"
    assert names.find("SPECrate2017_int_peak") is None
    goal = read_constraint("SPECrate2017_int_base >= 1500", Suites(project().champion))
    assert (goal.output, goal.sign, goal.threshold) == (INT, ">=", 1500)
    candidates = ranked(targets=["CINT2017rate >= 60", "CINT2017rate.base_score < 60"]).candidates
    assert all(sum(candidate.probabilities) == pytest.approx(1) for candidate in candidates)


def test_the_probabilities_of_the_first_place_sum_to_one():
    first = {each.name: each.probability_first for each in ranked().candidates}
    assert sum(first.values()) == pytest.approx(1)
    assert first["large"] > 0.9
    twins = [{**MACHINES[1], "name": name} for name in ("one", "other")]
    of_twins = ranked(twins, by="score/price").candidates
    assert [each.probability_first for each in of_twins] == pytest.approx([0.5, 0.5], abs=0.5)
    assert sum(each.probability_first for each in of_twins) == pytest.approx(1)
    cheap = ranked([MACHINES[1], {**MACHINES[1], "name": "cheap", "price": 10}], by="score/price").candidates
    assert cheap[0].name == "cheap"
    assert cheap[0].probability_first == 1
    assert "comes first" in format_ranking(ranked())


def test_no_probability_of_the_first_place_where_it_is_not_known():
    assert ranked(MACHINES[:1]).candidates[0].probability_first is None
    assert {each.probability_first for each in ranked(by="price").candidates} == {None}
    several = [{"processor": "Xeon Gold 6148", "name": "any"}, MACHINES[1]]
    assert {each.probability_first for each in ranked(several).candidates} == {None}


def test_rank_machines_orders_by_ratio_criteria():
    orders = {
        by: [candidate.name for candidate in ranked(by=by).candidates] for by in ("score", "price", "score/price")
    }
    assert (orders["score"], orders["price"]) == (["large", "small"], ["small", "large"])
    cautious = ranked(by="low").candidates
    assert [each.value for each in cautious] == [each.score_low for each in cautious]
    per_watt = ranked(by="score/watt")
    assert [candidate.name for candidate in per_watt.candidates] == ["small", "large"]
    for candidate in per_watt.candidates:
        assert candidate.value == pytest.approx(candidate.score / candidate.watts)
        assert candidate.value_low == pytest.approx(candidate.score_low / candidate.watts)
    tdp = project().champion.reference_data.entity_facts.loc["xeon gold 6148", "tdp_w"]
    small = per_watt.candidates[0]
    assert (small.watts, small.watts_assumed, per_watt.candidates[1].watts_assumed) == (tdp, True, False)
    assert any("watts assumed" in note and "TDP of the processors alone" in note for note in per_watt.notes)
    of_task = ranked(by="CINT2017rate/price", targets=["CFP2017rate > 1"])
    assert set(of_task.weights) == {"SPECrate2017_fp_base"}, "the score is that of the targets"
    assert of_task.candidates[0].value > 0


def test_score_is_a_geometric_mean_with_an_interval():
    alone = {
        name: {candidate.line: candidate for candidate in ranked(targets=[f"{name} > 1"]).candidates}
        for name in ("CINT2017rate", "CFP2017rate")
    }
    both = ranked(targets=["SPECrate2017_int_base > 1", "CFP2017rate > 1"])
    assert dict(both.weights) == pytest.approx({"SPECrate2017_int_base": 0.5, "SPECrate2017_fp_base": 0.5})
    for candidate in both.candidates:
        for end in ("score", "score_low", "score_high"):
            first, second = (getattr(alone[name][candidate.line], end) for name in ("CINT2017rate", "CFP2017rate"))
            assert getattr(candidate, end) == pytest.approx((first * second) ** 0.5)
    assert dict(ranked(targets=["CFP2017rate > 10"]).weights) == {"SPECrate2017_fp_base": 1.0}
    assert len(ranked().weights) == 4


def test_candidates_that_miss_the_target_stand_below_a_line():
    machines = [{**MACHINES[1], "name": name, "price": price} for name, price in (("a", 2000), ("b", 2100))]
    scores = [candidate.score for candidate in ranked(targets=["CINT2017rate > 1"]).candidates]
    goal = [f"CINT2017rate >= {np.sqrt(scores[0] * scores[1])}"]
    ranking = ranked([{**MACHINES[0], "price": 1}, *machines], by="score/price", targets=goal)
    assert [(each.name, each.sure) for each in ranking.candidates] == [("a", True), ("b", True), ("small", False)]
    assert ranking.sure == 0.5
    alone = ranked(by="score/watt", targets=goal, sure=0.5)
    assert [(each.name, each.sure) for each in alone.candidates] == [("large", True), ("small", False)]
    lines = format_ranking(ranking).splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["1", "2", "does", "3"]
    assert lines[3].strip() == "does not reach the target (< 50 %)"
    assert "does not reach" not in format_ranking(ranked(MACHINES))


def test_equal_candidates_keep_their_order_with_line_numbers():
    candidates = ranked([{"processor": "Xeon Gold 6148", "chips": 2}] * 3).candidates
    assert [candidate.line for candidate in candidates] == [1, 2, 3]
    assert [candidate.name for candidate in candidates] == [f"2 x xeon gold 6148 (line {line})" for line in (1, 2, 3)]


@pytest.mark.parametrize(
    ("price", "read"), [("14,500", 14500), ("1 200 000", 1200000), (14.125, 14.125), ("0.125", 0.125)]
)
def test_a_price_may_have_separators_of_thousands(price, read):
    (entry,) = read_machines({"processor": "x", "price": price})
    assert read_candidate(entry).price == read


@pytest.mark.parametrize("price", ["35.000", "€35.000", "14.500", "1.234.567"])
def test_a_price_whose_points_may_separate_thousands_is_refused(price):
    (entry,) = read_machines({"processor": "x", "price": price})
    with pytest.raises(UserError, match=f"write {price.strip('€').replace('.', '')}"):
        read_candidate(entry)


def test_entries_separate_names_prices_and_watts():
    (entry,) = read_machines({"Name": " a  b ", "price": "1e4", "watts": "1.2 kW", "chips": 2})
    candidate = read_candidate(entry)
    assert (entry.label, entry.values) == ("machine 1 (a b)", {"chips": 2})
    assert (candidate.name, candidate.price, candidate.watts) == ("a b", 1e4, 1200)


ZEUS = {"processor": "Zeus 1", "cores": 4, "clock": "2 GHz", "family": "Skylake-SP", "chips": 1}
REFUSED = [
    ({"price": "cheap"}, {}, "price must be a positive number without a currency"),
    ({"watts": "3 GHz"}, {}, "watts must be a positive number in W"),
    ({"prize": 3}, {}, "'prize'"),
    ({"name": ["a"]}, {}, "name must be one value"),
    ({"name": "a", "Name": "b"}, {}, "machine 1 (a) has name twice"),
    ({"name": "a" * 81}, {}, "at most 80 letters"),
    ({"suite": "CINT2017rate"}, {}, "ranked and compared machines must name no task"),
    ({}, {"by": "score/price"}, "needs the price of every candidate"),
    ({}, {"by": "score/wat"}, "--by must be score, low, price, cost, watts or a task, or one of them over price, cost"),
    ({}, {"by": "score/"}, "it is 'score/'"),
    ({}, {"by": "score*price"}, "it is 'score*price'"),
    ({}, {"by": "price/score"}, "it is 'price/score'"),
    ({}, {"by": "price/cost"}, "it is 'price/cost'"),
    ({}, {"by": "CINT2017rate/CFP2017rate"}, "tasks are"),
    ({}, {"targets": ["CINT2017rate = 3"]}, "TASK >= NUMBER"),
    ({}, {"targets": ["CINT2017rate >= -1"]}, "must be a positive one"),
    ({}, {"targets": ["SPECrate2017_int_peak >= 1"]}, "did you mean 'SPECrate2017_int_base'"),
    ({}, {"targets": ["CINT2017rate.peak >= 1"]}, "a target of CINT2017rate must be one of base_score"),
    ({}, {"sure": 0.9}, "--sure needs a target"),
]


@pytest.mark.parametrize(("cells", "options", "words"), REFUSED)
def test_rank_machines_refuses_invalid_requests(cells, options, words):
    with pytest.raises(UserError) as error:
        ranked([{"processor": "Xeon Gold 6148", "chips": 2, **cells}], **options)
    assert words in str(error.value)


def test_unknown_power_and_absurd_rates_are_refused():
    bare = PredictOptions(assume=False, neighbors=0, explain=False)
    with pytest.raises(UserError, match="add the column watts, or tdp"):
        rank_machines(read_machines(ZEUS), Suites(project().champion), make_request("score/watt"), bare)
    for rates in ({"years": 0}, {"electricity_price": -1}, {"years": float("nan")}):
        with pytest.raises(UserError):
            make_request(**rates)


def test_rank_command_prints_writes_and_repeats(tmp_path, capsys):
    path = tmp_path / "candidates.csv"
    path.write_text("name,processor,chips,price\nsmall,Xeon Gold 6148,1,1000\nlarge,Xeon Gold 6148,2,1500\n")
    command = ["rank", str(path), "--results", str(project().results), "--when", "2024-01", "--by", "score/price"]
    command += ["--target", "SPECrate2017_int_base >= 100", "--target", "CFP2017rate >= 100"]
    assert main(command) == 0
    printed = capsys.readouterr()
    for words in (
        "rank",
        "SPECrate2017_int_base >= 100",
        "all targets",
        "score/price",
        "note: watts assumed",
        "geometric mean",
    ):
        assert words in printed.out
    assert "estimates are not official results" in printed.err
    assert main([*command, "--json"]) == 0
    assert [candidate["name"] for candidate in json.loads(capsys.readouterr().out)["candidates"]] == ["large", "small"]
    written = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for out in written:
        assert main([*command, "--out", str(out)]) == 0
    assert written[0].read_bytes() == written[1].read_bytes()
    assert "probability of SPECrate2017_int_base >= 100" in pd.read_csv(written[0]).columns


def test_names_of_candidates_act_on_no_terminal_and_no_spreadsheet(tmp_path, capsys):
    path, out = tmp_path / "candidates.json", tmp_path / "ranking.csv"
    names = ["\x1b[31mred\x07\u202e", "=cmd|'/c calc'!A1", "+1", "@x"]
    path.write_text(json.dumps([{"name": name, "processor": "Xeon Gold 6148", "chips": 2} for name in names]))
    assert main(["rank", str(path), "--results", str(project().results), "--out", str(out)]) == 0
    assert main(["rank", str(path), "--results", str(project().results)]) == 0
    shown = capsys.readouterr().out
    assert "[31mred" in shown
    assert [letter for letter in ("\x1b", "\x07", "\u202e") if letter in shown] == []
    written = pd.read_csv(out)["name"].tolist()
    assert sorted(written) == sorted(["[31mred", "'=cmd|'/c calc'!A1", "'+1", "'@x"])


PRICED = [
    {"processor": "Xeon Gold 6148", "chips": 1, "price": 1000, "watts": 200, "memory": "12 x 32 GB DDR4-2666"},
    {"processor": "Xeon Gold 6148", "chips": 2, "price": 1000, "watts": 300, "memory": "12 x 32 GB DDR4-2666"},
]


def test_cost_has_price_and_electricity():
    answer = ranked(PRICED, by="cost", electricity_price=0.5, years=4)
    by_line = {candidate.line: candidate for candidate in answer.candidates}
    for line, watts in ((1, 200), (2, 300)):
        cost = 1000 + watts / 1000 * 8766 * 4 * 0.5
        assert by_line[line].cost == pytest.approx(cost)
        assert by_line[line].cost_per_score_year == pytest.approx(cost / by_line[line].score / 4)
    assert [candidate.line for candidate in answer.candidates] == [1, 2]
    assert any("electricity at 0.5 per kWh for 4 years" in note for note in answer.notes)
    machines = [{**PRICED[0], "price": None}, PRICED[1]]
    assert {candidate.line: candidate.cost for candidate in ranked(machines).candidates} == {1: None, 2: 1000}
    assert [refused.line for refused in ranked(machines, by="score/cost").refused] == [1]


TASKS = ("a", "b")
OUTPUTS = tuple(Output(task, "value") for task in TASKS)
RATE = DerivedOutput("rate", "1/s", "1 / (a + b)", TASKS, (), lambda scores, cells: 1 / (scores["a"] + scores["b"]))
QUANTITIES = (SCORE, *EXPENSES, *TASKS, RATE.name)
LEVELS = st.sampled_from((1e-6, 0.2, 1.0, 1.5, 2.0, 3.7, 1e9))
"""Few values, so that candidates are often equal in some of them."""
CANDIDATES = st.lists(
    st.fixed_dictionaries(
        {"probability": st.sampled_from((0.0, 0.3, 0.5, 0.9, 1.0)), **dict.fromkeys((*EXPENSES, *TASKS), LEVELS)}
    ),
    min_size=2,
    max_size=8,
)
DIVIDED = ["", *(f"/{each}" for each in EXPENSES)]
CRITERIA = st.builds(str.__add__, st.sampled_from(QUANTITIES), st.sampled_from(DIVIDED))


def fake(*, lower):
    presentation = SimpleNamespace(lower_is_better=lower, derived=(RATE,), price_columns=())
    rules = SimpleNamespace(presentation=presentation)
    return SimpleNamespace(task_names=TaskNames(TASKS, {}), rules=rules, targets_of=dict.fromkeys(TASKS, ("value",)))


def evaluate(line, given_values, request, weights):
    """Return a candidate with its value, as a ranking computes it."""
    scores = {output: Spread(given_values[output.task], None, None) for output in OUTPUTS}
    score = given_values["a"] ** weights[0] * given_values["b"] ** weights[1]
    derived = {RATE.name: Spread(RATE.compute(given_values, {}), None, None)}
    facts = {word: given_values[word] for word in EXPENSES}
    value = evaluate_criterion(request.criterion, facts, Spread(score, None, None), scores, derived)
    least = given_values["probability"] if request.constraints else None
    unused = dict.fromkeys(("score_low", "score_high", "value_low", "value_high", "trust"))
    return Ranked(
        rank=0,
        line=line,
        name=str(line),
        machine="",
        score=score,
        probabilities=(),
        joint_probability_min=least,
        joint_probability_max=least,
        sure=None if least is None else least >= request.sure,
        watts_assumed=False,
        value=value.median,
        **{word: given_values[word] for word in EXPENSES},
        **unused,
    )


def is_dominated(candidate, other, request, *, lower):
    """Return whether a candidate is no better than the other in anything, costs no less, and is worse in something."""
    better = -1 if lower else 1
    senses = {**dict.fromkeys(TASKS, better), **dict.fromkeys(EXPENSES, -1)}
    if request.constraints:
        senses["probability"] = 1
    gains = [sense * (candidate[word] - other[word]) for word, sense in senses.items()]
    return max(gains) <= 0 and min(gains) < 0


@settings(max_examples=500, deadline=None)
@given(CRITERIA, CANDIDATES, st.booleans(), st.booleans(), st.sampled_from(((0.5, 0.5), (0.2, 0.8))))
def test_a_dominated_candidate_never_stands_above(criterion, candidates, lower, has_targets, weights):
    champion = fake(lower=lower)
    try:
        read = read_criterion(criterion, champion)
    except UserError as error:
        assert "\n" not in str(error)
        if "must not divide" in str(error):
            assert read_criterion(error.remedy.split("'")[1], champion), "the remedy is accepted"
        return
    goals = (Constraint(OUTPUTS[0], ">=", 1.0),) if has_targets else ()
    request = RankingRequest(read, dict(zip(OUTPUTS, weights, strict=True)), goals)
    ranked = sort_candidates(
        [evaluate(line, values, request, weights) for line, values in enumerate(candidates)],
        request,
        lower_is_better=lower,
    )
    for place, below in enumerate(ranked):
        for above in ranked[:place]:
            assert not is_dominated(candidates[above.line], candidates[below.line], request, lower=lower)


@pytest.mark.parametrize(
    ("lower", "typed", "right"),
    [
        (True, "score/price", "score"),
        (True, "a/watts", "a"),
        (True, "rate/price", None),
        (True, "low", None),
        (False, "score/price", None),
        (False, "rate/cost", "rate"),
        (False, "price", None),
    ],
)
def test_a_criterion_that_rewards_an_expense_is_refused_with_the_right_one(lower, typed, right):
    if right is None:
        assert read_criterion(typed, fake(lower=lower)).text == typed
        return
    with pytest.raises(UserError, match="must not divide") as error:
        read_criterion(typed, fake(lower=lower))
    assert error.value.remedy == f"write --by {right!r}"
