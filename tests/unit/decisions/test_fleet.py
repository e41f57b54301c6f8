"""Sizes of fleets: numbers with probabilities, mixes, growth, refused rows, and the dependence of errors."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace
from functools import cache
from statistics import NormalDist

import numpy as np
import pytest
from champion_project import project
from hypothesis import given, settings
from hypothesis import strategies as st

import perfcast
from perfcast.cli.main import main
from perfcast.decisions.fleet import ESTIMATED, MAX_TARGETS, MEASURED, CountChance
from perfcast.decisions.joint_scores import JointScores, Spread
from perfcast.decisions.sizing_request import MAX_COUNT, read_sizing
from perfcast.utils.errors import UserError

OLD = {"count": 40, "processor": "Xeon Gold 6148", "chips": 1}
NEW = {"processor": "Xeon Gold 6148", "chips": 2}
UNSEEN = {"processor": "Xeon Gold 6148", "chips": 1, "cores": 3}
INTEGER = "int_rate:1"


@cache
def champion() -> perfcast.api.Champion:
    return perfcast.load_champion(project().folder)


def size(fleet=OLD, onto=NEW, mix=INTEGER, **options) -> perfcast.api.Sizing:
    return champion().size(fleet, onto, mix=mix, **options)


def test_machine_replaces_itself_one_to_one_without_doubt():
    target = size(onto={name: value for name, value in OLD.items() if name != "count"}).targets[0]
    assert (target.needed, target.low, target.high, target.ratio) == (40, 40, 40, 1.0)
    assert target.counts == (CountChance(40, 1.0),)


def test_number_suffices_with_at_least_the_asked_probability_and_no_smaller_one_does():
    for sure in (0.05, 0.5, 0.9, 0.99):
        target = size({**OLD, "count": 4000}, sure=sure).targets[0]
        enough = [each.count for each in target.counts if each.suffices >= sure]
        assert target.needed == min(enough), "where numbers are several apart, the needed one is among them"
        assert target.low <= target.high


def test_probabilities_rise_with_the_number_and_end_near_one():
    counts = size({**OLD, "count": 4000}).targets[0].counts
    assert [each.count for each in counts] == sorted({each.count for each in counts})
    assert [each.suffices for each in counts] == sorted(each.suffices for each in counts)
    assert counts[-1].suffices > 0.99


def test_interval_of_the_ratio_is_that_of_the_comparison_of_estimates_where_errors_are_normal():
    """The comparison adds half widths as those of normal errors; the backtests of a few rows have heavier tails."""
    calibrated = champion().calibrated
    calibration = copy(calibrated.calibration)
    levels = np.linspace(0, 1, len(calibration.quantiles[""]))
    calibration.quantiles = {"": [NormalDist().inv_cdf((1 + min(level, 0.9999)) / 2) for level in levels]}
    known = replace(champion(), calibrated=replace(calibrated, calibration=calibration))
    pair = next(
        each for each in known.compare([UNSEEN, {**UNSEEN, "chips": 2}]).pairs if each.task == "SPECrate2017_int_base"
    )
    target = known.size({**UNSEEN, "chips": 2, "count": 1}, UNSEEN, mix=INTEGER).targets[0]
    assert target.measured == ESTIMATED
    assert np.log(target.ratio_high / target.ratio_low) == pytest.approx(np.log(pair.high / pair.low), rel=0.1)


def test_correlated_errors_narrow_the_number():
    known = champion()
    alone = replace(known, calibrated=replace(known.calibrated, known=None))
    request = {**UNSEEN, "chips": 2, "count": 1000}, UNSEEN
    both = [each.size(*request, mix=INTEGER).targets[0] for each in (known, alone)]
    assert both[0].high - both[0].low < both[1].high - both[1].low


def test_published_results_come_first_with_a_spread():
    frame = project().standard.frame
    task = "CINT2017rate"
    row = frame[frame["suite"] == task].iloc[-1]
    machine = {
        "processor": row["cpu_model"],
        "chips": float(row["chips"]),
        "cores": float(row["cores_per_chip_stated"]),
    }
    (published,) = champion().published(machine, tasks=task).values()
    assert not published.differs
    target = size({**UNSEEN, "count": 1000}, machine).targets[0]
    assert target.measured == MEASURED
    speedup = published.median / champion().predict(UNSEEN).machines[0].estimates[2].median
    assert target.speedups["SPECrate2017_int_base"] == pytest.approx(speedup, rel=0.1)
    assert target.low < target.high


def test_need_grows_with_growth_headroom_utilization_and_spares():
    plain = size({**OLD, "count": 1000}).targets[0]
    assert size({**OLD, "count": 1000}, growth=0.5, years=2).targets[0].ratio == pytest.approx(plain.ratio / 2.25)
    assert size({**OLD, "count": 1000}, headroom=0.5).targets[0].ratio == pytest.approx(plain.ratio / 2)
    assert size({**OLD, "count": 1000, "utilization": "50 %"}).targets[0].ratio == pytest.approx(plain.ratio * 2)
    assert size({**OLD, "count": 1000}, spare=3).targets[0].needed == plain.needed + 3


def test_mix_weighs_the_time_of_the_fleet():
    ends = [size({**OLD, "count": 1000}, mix=mix).targets[0].ratio for mix in ("int_rate", "fp_rate")]
    middle = size({**OLD, "count": 1000}, mix="int_rate:0.5,fp_rate:50%").targets[0].ratio
    assert 1 / middle == pytest.approx(np.mean([1 / end for end in ends]), rel=0.02)
    assert size(mix={"int_rate": 0.5, "fp_rate": 0.5}).mix == size(mix="").mix


@pytest.mark.parametrize(
    ("count", "read"),
    [("1,200", 1200), ("1 200", 1200), ("1\u202f234\u00a0567", 0), ("12'500", 12500), ("1,2", 0), ("0,125", 0)],
)
def test_count_may_have_separators_of_thousands_but_no_decimals(count, read):
    answer = size([OLD, {**OLD, "count": count}])
    assert (answer.machines, len(answer.refused)) == (40 + read, not read)


@pytest.mark.parametrize(("count", "remedy"), [("1.000", "1000"), ("1.200", "1200"), ("12.000", "12000")])
def test_points_that_may_separate_thousands_are_refused(count, remedy):
    refused = size([OLD, {**OLD, "count": count}]).refused[0]
    assert refused.message.endswith(f"write {remedy}")
    assert size({**OLD, "count": 1.0}).machines == 1, "a number of JSON has no such points"


def test_smallest_utilization_needs_a_machine():
    target = size({**OLD, "count": 1, "utilization": "0.01 %"}).targets[0]
    assert (target.needed, target.low, target.high) == (1, 1, 1)
    assert all(each.width <= 1 for each in target.narrowed_by)


def test_rows_of_equal_machines_are_one():
    assert size([{**OLD, "count": 30}, {**OLD, "count": 10}]).targets == size().targets


def test_costs_watts_energy_and_totals_are_those_of_all_machines():
    onto = {**NEW, "price": 100, "watts": 500}
    target = size(onto=onto, years=2, electricity_price=0.5, carbon=0.4).targets[0]
    assert target.watts == target.needed * 500
    assert 0.8 * target.watts * 8.766 < target.energy < target.watts * 8.766
    assert target.carbon == pytest.approx(target.energy * 0.4)
    assert target.cost == pytest.approx(target.needed * 50 + target.energy * 0.5)
    assert target.totals["cores"] == target.needed * 40
    dear = {**NEW, "price": 900, "watts": 500, "name": "dear"}
    both = size([{**NEW, "count": 4, "watts": 500}, OLD], [onto, dear]).targets
    assert [(each.price, each.name) for each in both] == [(100, "2 x xeon gold 6148"), (900, "dear")]


@pytest.mark.parametrize(("smt", "threads"), [("on", 2), ("off", 1), ("", 2)])
def test_virtual_processors_are_threads_with_smt_and_cores_without(smt, threads):
    answer = size({**OLD, "smt": smt}, {**NEW, "smt": smt})
    (target,) = answer.targets
    assert answer.totals == {"cores": 40 * 20, "vCPUs": 40 * 20 * threads}
    assert target.totals == {"cores": target.needed * 40, "vCPUs": target.needed * 40 * threads}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"smt": "maybe"}, "smt must be on or off"),
        ({"processor": "Altra Q80-30", "smt": "on"}, "threads per core"),
        ({"count": 0}, "count must be a whole number"),
        ({"count": -3}, "count must be a whole number"),
        ({"count": 2.5}, "count must be a whole number"),
        ({"count": ""}, "has none"),
        ({"count": MAX_COUNT + 1}, "count must be a whole number"),
        ({"utilization": 1.4}, "utilization of"),
        ({"utilization": "45"}, "utilization of"),
        ({"utilization": "none"}, "utilization of"),
        ({"utilization": "5e-324"}, "must be from 0.0001 to 1"),
        ({"utilization": "0.000000001"}, "must be from 0.0001 to 1"),
        ({"processor": "Xeon Gibberish"}, "known CPU model"),
        ({"Qty": 3}, "every field once"),
        ({"chips": None}, "must give chips"),
        ({"watts": -1}, "watts"),
        ({"suite": "CINT2017rate"}, "must name no task"),
    ],
)
def test_bad_row_is_refused_with_its_name_and_the_others_are_answered(row, message):
    answer = size([OLD, {**OLD, **row}])
    (refused,) = answer.refused
    assert message in refused.message
    assert (refused.name, answer.machines) == ("machine 2", 40)
    assert answer.targets == size().targets
    with pytest.raises(UserError):
        size({**OLD, **row})


def test_bad_target_is_refused_and_the_others_are_answered():
    answer = size(onto=[{"processor": "Xeon Gibberish"}, NEW])
    assert ([each.line for each in answer.refused], [each.line for each in answer.targets]) == ([1], [2])
    with pytest.raises(UserError, match="target"):
        size(onto={"processor": "Xeon Gibberish"})
    with pytest.raises(UserError, match="targets"):
        size(onto=[NEW] * (MAX_TARGETS + 1))


@pytest.mark.parametrize(
    "mix",
    [
        "int_rate:0.7",
        "int_rate:0.7,fp_rate:0.4",
        "int_rate:0.5,int_rate:0.5",
        "int_speed",
        "nothing",
        ":1",
        "int_rate:-1",
    ],
)
def test_mix_that_cannot_be_is_one_line(mix):
    with pytest.raises(UserError) as caught:
        size(mix=mix)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"growth": -0.1}, {"headroom": 1.0}, {"spare": 1.5}, {"sure": 0}, {"years": 0}, {"growth": 9, "years": 99}],
)
def test_options_out_of_bounds_are_refused(options):
    with pytest.raises(UserError):
        size(**options)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40))
def test_any_mix_is_read_or_refused(text):
    try:
        request = read_sizing(project().champion, text)
    except UserError:
        return
    assert sum(request.mix.values()) == pytest.approx(1)


def test_draws_have_the_margins_and_the_dependence_that_are_asked():
    grid = np.linspace(0, 3, 101).tolist()
    spreads = [Spread(0.0, 0.1, 0.9, grid), Spread(1.0, 0.2, 0.9, grid), Spread(2.0, 0.3, 0.9, grid, is_published=True)]
    joint = JointScores(spreads, np.array([[1, 0.8, 0.8], [0.8, 1, 0.8], [0.8, 0.8, 1]]))
    for row, spread in enumerate(spreads):
        low, middle, high = np.quantile(joint.logs[row], (0.05, 0.5, 0.95))
        assert (low, middle, high) == pytest.approx(
            (spread.middle - spread.half_width, spread.middle, spread.middle + spread.half_width), abs=0.02
        )
    first, second, published = joint.logs
    assert np.corrcoef(first, second)[0, 1] == pytest.approx(0.8, abs=0.05)
    assert abs(np.corrcoef(first, published)[0, 1]) < 0.1
    left = joint.know([0])
    assert np.ptp(left[0]) == 0
    assert 0.4 < np.std(left[1]) / np.std(second) < 0.8
    assert np.std(left[2]) == pytest.approx(np.std(published))


def test_size_command_prints_and_writes_what_python_answers(tmp_path, capsys):
    file = tmp_path / "fleet.csv"
    file.write_text("Qty,Processor,chips,Utilization,rack\n40,Xeon Gold 6148,1,,A\n0,Xeon Gold 6148,1,,B\n")
    command = [
        "size",
        str(file),
        "--results",
        str(project().results),
        "--onto",
        "2 x Xeon Gold 6148",
        "--mix",
        "int_rate",
    ]
    assert main(command) == 3
    printed = capsys.readouterr()
    for words in ("needed (90 %)", "2 x xeon gold 6148", "line 3: refused, count"):
        assert words in printed.out
    assert "rack" in printed.err
    assert "Qty" not in printed.err
    assert main([*command, "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["targets"] == json.loads(json.dumps(size().to_dict()["targets"]))
    assert main([*command, "--csv"]) == 3
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(answer["targets"][0]["counts"])
