"""Rankings: calibrated probabilities, stable orders, and one line for invalid input."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import pytest
from champion_project import FEATURES, project

from perfcast.cli.main import main
from perfcast.decisions.criteria import (
    Output,
    Spread,
    evaluate_criterion,
    read_candidate,
    read_constraint,
    read_criterion,
    read_request,
)
from perfcast.decisions.display import format_ranking
from perfcast.decisions.ranking import rank_machines
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import build
from perfcast.domains.servers.testing import cpu_catalog, spec_cpu2017
from perfcast.inference import PredictOptions, read_machines
from perfcast.inference.champion import build_features
from perfcast.uncertainty.conformal import LEVEL, ConformalCalibration, joint_bounds, outputs_of, probability_at_least
from perfcast.utils.errors import UserError

INT, FP = Output("CINT2017rate", "base_score"), Output("CFP2017rate", "base_score")
MACHINES = [
    {"processor": "Xeon Gold 6148", "chips": 1, "name": "small", "price": 1000},
    {"processor": "Xeon Gold 6148", "chips": 2, "name": "large", "price": 1500, "watts": 2000},
]


def make_request(by="score", targets=(), **more):
    return read_request(targets, project().champion, by=by, **more)


def ranked(machines=MACHINES, **options):
    return rank_machines(read_machines(machines), project().champion, make_request(**options))


def calibrated_on(residuals, far):
    names = ["one"]
    calibration = ConformalCalibration().fit(
        residuals, np.full(len(residuals), "task"), np.zeros(len(residuals)), pd.DataFrame({"one": far})
    )
    return calibration, names


def test_probabilities_are_calibrated():
    """Of all cases with a probability of about p, the share p reaches the threshold."""
    generator = np.random.default_rng(0)

    def draw(count):
        far = generator.uniform(0, 1, count)
        return far, generator.standard_t(4, count) * (0.02 + 0.1 * far)

    far, residuals = draw(20_000)
    calibration, _ = calibrated_on(residuals, far)
    far, residuals = draw(20_000)
    half_width = calibration.half_widths(np.full(len(far), "task"), pd.DataFrame({"one": far}))
    predicted = np.exp(generator.normal(5, 1, len(far)))
    measured = predicted * np.exp(-residuals)
    threshold = predicted * np.exp(generator.normal(0, 0.08, len(far)))
    probability = np.array(
        [
            probability_at_least(limit, median, median * np.exp(wide), LEVEL, calibration.quantiles["task"])
            for limit, median, wide in zip(threshold, predicted, half_width, strict=True)
        ]
    )
    came = measured >= threshold
    for low in np.arange(0, 1, 0.1):
        among = (probability >= low) & (probability < low + 0.1)
        assert among.sum() > 300
        assert came[among].mean() == pytest.approx(probability[among].mean(), abs=0.04)


def test_pit_of_unseen_results_is_uniform():
    """The probability to reach what was then measured is a probability integral transform."""
    raw = {name: Path(mkdtemp(prefix="perfcast-choosing-")) for name in ("spec_cpu2017", "cpu_catalog")}
    spec_cpu2017.write(raw["spec_cpu2017"], rows=400, seed=6)
    cpu_catalog.write(raw["cpu_catalog"], rows=400, seed=5)
    standard = build(raw, {"published_until": None}).table
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


def test_probability_agrees_with_the_interval_and_is_never_certain():
    calibration, _ = calibrated_on(np.random.default_rng(1).normal(0, 0.05, 500), np.zeros(500))
    quantiles = calibration.quantiles["task"]
    half_widths = {
        level: calibration.half_widths(np.array(["task"]), pd.DataFrame({"one": [0.0]}), level)[0]
        for level in (0.5, 0.9)
    }
    high = 100 * np.exp(half_widths[0.9])
    assert probability_at_least(100, 100, high, 0.9, quantiles) == 0.5
    assert probability_at_least(high, 100, high, 0.9, quantiles) == pytest.approx(0.05, abs=1e-6)
    assert probability_at_least(100 * np.exp(-half_widths[0.5]), 100, high, 0.9, quantiles) == pytest.approx(
        0.75, abs=1e-6
    )
    thresholds = np.linspace(50, 200, 301)
    probabilities = np.array([probability_at_least(limit, 100, high, 0.9, quantiles) for limit in thresholds])
    assert (np.diff(probabilities) <= 0).all()
    assert 0 < probabilities.min() < 0.005 and 0.995 < probabilities.max() < 1


def test_joint_bounds_hold_for_any_dependence():
    assert joint_bounds([0.9, 0.8]) == pytest.approx((0.7, 0.8))
    assert joint_bounds([0.3, 0.2]) == (0.0, 0.2)
    generator = np.random.default_rng(2)
    first, second = generator.normal(size=1000), generator.normal(size=1000)
    for tied in (first, -first, second):
        both = np.mean((first > 0.2) & (tied > -0.1))
        low, high = joint_bounds([np.mean(first > 0.2), np.mean(tied > -0.1)])
        assert low - 1e-9 <= both <= high + 1e-9


def test_read_constraint_accepts_published_task_names():
    names = project().champion.task_names
    assert names.find("SPECrate2017_int_base") == names.find("cint2017RATE") == "CINT2017rate"
    assert names.find("SPECspeed2017 fp base") == "CFP2017speed"
    assert names.find("SPECrate2017_int_peak") is None
    goal = read_constraint("SPECrate2017_int_base >= 1500", project().champion)
    assert (goal.output, goal.sign, goal.threshold) == (INT, ">=", 1500)


def test_probability_below_complements_at_least():
    candidates = ranked(targets=["CINT2017rate >= 60", "CINT2017rate.base_score < 60"]).candidates
    assert all(sum(candidate.probabilities) == pytest.approx(1) for candidate in candidates)


def test_rank_machines_orders_by_ratio_criteria():
    assert [candidate.name for candidate in ranked(by="score").candidates] == ["large", "small"]
    assert [candidate.name for candidate in ranked(by="price").candidates] == ["small", "large"]
    by_value = [candidate.name for candidate in ranked(by="score/price").candidates]
    assert [candidate.name for candidate in ranked(by="price/score").candidates] == by_value
    per_watt = ranked(by="score/watt")
    assert [candidate.name for candidate in per_watt.candidates] == ["small", "large"]
    for candidate in per_watt.candidates:
        assert candidate.value == pytest.approx(candidate.score / candidate.watts)
        assert candidate.value_low == pytest.approx(candidate.score_low / candidate.watts)
    tdp = project().champion.reference_data.entity_facts.loc["xeon gold 6148", "tdp_w"]
    small = per_watt.candidates[0]
    assert (small.watts, small.watts_assumed, per_watt.candidates[1].watts_assumed) == (tdp, True, False)
    assert any("watts assumed" in note and "TDP of the processors alone" in note for note in per_watt.notes)
    price = ranked(by="CINT2017rate*score/price", targets=["CFP2017rate > 1"]).candidates[0]
    assert price.value > 0


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


def test_division_by_a_score_swaps_its_interval():
    measure = read_criterion("price/score", project().champion)
    value = evaluate_criterion(measure, {"price": 8.0}, Spread(4.0, 2.0, 8.0), {})
    assert (value.low, value.median, value.high) == pytest.approx((1.0, 2.0, 4.0))
    assert evaluate_criterion(measure, {"price": 8.0}, Spread(4.0, None, None), {}).low is None


def test_candidates_that_miss_the_targets_come_last():
    scores = {candidate.name: candidate.score for candidate in ranked(targets=["CINT2017rate > 1"]).candidates}
    between = np.sqrt(scores["small"] * scores["large"])
    ranking = ranked(by="score/watt", targets=[f"CINT2017rate >= {between}"], sure=0.5)
    assert [(candidate.name, candidate.sure) for candidate in ranking.candidates] == [("large", True), ("small", False)]
    surest = ranked(by="probability", targets=[f"CINT2017rate >= {between}"]).candidates[0]
    assert surest.name == "large"


def test_candidates_that_miss_the_target_stand_below_a_line():
    machines = [{**MACHINES[1], "name": name, "price": price} for name, price in (("a", 2000), ("b", 2100))]
    scores = [candidate.score for candidate in ranked(targets=["CINT2017rate > 1"]).candidates]
    goal = [f"CINT2017rate >= {np.sqrt(scores[0] * scores[1])}"]
    ranking = ranked([{**MACHINES[0], "price": 1}, *machines], by="score/price", targets=goal)
    assert [(each.name, each.sure) for each in ranking.candidates] == [("a", True), ("b", True), ("small", False)]
    assert ranking.sure == 0.5
    lines = format_ranking(ranking).splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["1", "2", "does", "3"]
    assert lines[3].strip() == "does not reach the target (< 50 %)"
    assert "does not reach" not in format_ranking(ranked(MACHINES))


def test_equal_candidates_keep_their_order_with_line_numbers():
    candidates = ranked([{"processor": "Xeon Gold 6148", "chips": 2}] * 3).candidates
    assert [candidate.line for candidate in candidates] == [1, 2, 3]
    assert [candidate.name for candidate in candidates] == [f"2 x xeon gold 6148 (line {line})" for line in (1, 2, 3)]


def test_entries_separate_names_prices_and_watts():
    (entry,) = read_machines({"Name": " a  b ", "price": "1e4", "watts": "1.2 kW", "chips": 2})
    candidate = read_candidate(entry)
    assert (entry.label, entry.values) == ("machine 1 (a b)", {"chips": 2})
    assert (candidate.name, candidate.price, candidate.watts) == ("a b", 1e4, 1200)


@pytest.mark.parametrize(
    ("cells", "options", "words"),
    [
        ({"price": "cheap"}, {}, "price must be a positive number without a currency"),
        ({"price": -3}, {}, "price must be a positive number"),
        ({"watts": "3 GHz"}, {}, "watts must be a positive number in W"),
        ({"prize": 3}, {}, "'prize'"),
        ({"name": ["a"]}, {}, "name must be one value"),
        ({"name": "a", "Name": "b"}, {}, "machine 1 (a) has name twice"),
        ({"name": "a" * 81}, {}, "at most 80 letters"),
        ({"suite": "CINT2017rate"}, {}, "ranked and compared machines must name no task"),
        ({}, {"by": "score/price"}, "needs the price of every candidate"),
        ({}, {"by": "probability"}, "needs a target"),
        ({}, {"by": "score/wat"}, "--by must name"),
        ({}, {"by": "score/"}, "joined by * and /"),
        ({}, {"by": "score/score"}, "by itself"),
        (
            {},
            {"by": "score*price"},
            "must not reward a higher price, but it is 'score*price'; write --by 'score/price'",
        ),
        ({}, {"by": "CINT2017rate/CFP2017rate"}, "must not reward a lower CFP2017rate"),
        ({}, {"by": "*".join(["score"] * 9)}, "at most 8 words"),
        ({}, {"targets": ["CINT2017rate = 3"]}, "TASK >= NUMBER"),
        ({}, {"targets": ["CINT2017rate >= fast"]}, "must be a positive one"),
        ({}, {"targets": ["CINT2017rate >= -1"]}, "must be a positive one"),
        ({}, {"targets": ["SPECrate2017_int_peak >= 1"]}, "did you mean 'SPECrate2017_int_base'"),
        ({}, {"targets": ["CINT2017rate.peak >= 1"]}, "a target of CINT2017rate must be one of base_score"),
        ({}, {"sure": 0.9}, "--sure needs a target"),
    ],
)
def test_rank_machines_refuses_invalid_requests(cells, options, words):
    with pytest.raises(UserError) as error:
        ranked([{"processor": "Xeon Gold 6148", "chips": 2, **cells}], **options)
    assert words in str(error.value)


def test_unknown_power_is_refused():
    machine = {"processor": "Zeus 1", "cores": 4, "clock": "2 GHz", "family": "Skylake-SP", "chips": 1}
    with pytest.raises(UserError, match="add the column watts, or tdp"):
        rank_machines(
            read_machines(machine),
            project().champion,
            make_request("score/watt"),
            PredictOptions(assume=False, neighbors=0, explain=False),
        )


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


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--sure", "90"], "0.9 means 90 %"), (["--out", "x.txt"], ".csv or .json"), (["--level", "2"], "0.9 means 90 %")],
)
def test_rank_command_reports_mistakes_in_one_line(capsys, options, words):
    assert main(["rank", "nowhere.csv", "--results", str(project().results), *options]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


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


def test_cost_of_unknown_price_is_unknown_and_refused_where_it_ranks():
    machines = [{**PRICED[0], "price": None}, PRICED[1]]
    by_line = {candidate.line: candidate.cost for candidate in ranked(machines).candidates}
    assert by_line == {1: None, 2: 1000}
    assert [refused.line for refused in ranked(machines, by="score/cost").refused] == [1]


@pytest.mark.parametrize("rates", [{"years": 0}, {"electricity_price": -1}, {"years": float("nan")}])
def test_rates_must_be_positive(rates):
    with pytest.raises(UserError):
        make_request(**rates)
