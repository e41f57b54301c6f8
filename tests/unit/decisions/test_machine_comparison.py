"""Comparisons of machines: order, probabilities, correlation of errors and drivers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from champion_project import project

import perfcast
from perfcast.cli.main import main
from perfcast.decisions.machine_comparison import MAX_COMPARED, compare_machines
from perfcast.domains.servers.server_rules import SERVERS
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import read_machines, read_short_machine
from perfcast.inference.options import make_options
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError

OPTIONS = make_options(when="2024-01")
FAST, SLOW = {"processor": "Xeon Gold 6148", "chips": 2}, {"processor": "Xeon Gold 6148", "chips": 1}


def compare(*machines: dict, champion: Champion | None = None):
    return compare_machines(read_machines(list(machines)), Suites(champion or project().champion), OPTIONS)


def test_probability_follows_the_order_and_turns_with_it():
    forth, back = compare(FAST, SLOW), compare(SLOW, FAST)
    for pair, turned in zip(forth.pairs, back.pairs, strict=True):
        assert (pair.probability > 0.5) == (pair.ratio > 1)
        assert pair.probability == pytest.approx(1 - turned.probability)
        assert pair.low < pair.ratio < pair.high
        assert pair.low == pytest.approx(1 / turned.high)
    rate = next(pair for pair in forth.pairs if pair.task == "SPECrate2017_int_base")
    assert rate.probability > 0.9


def test_equal_machines_are_even():
    for pair in compare(FAST, FAST).pairs:
        assert (pair.ratio, pair.probability, pair.drivers) == (1.0, 0.5, ())


def test_correlated_errors_narrow_the_ratio():
    champion = project().champion
    alone = replace(champion, calibrated=replace(champion.calibrated, known=None))
    for pair, other in zip(compare(FAST, SLOW).pairs, compare(FAST, SLOW, champion=alone).pairs, strict=True):
        assert 0 < pair.correlation < 1
        assert np.log(pair.high / pair.low) < np.log(other.high / other.low)
        assert other.correlation == 0


def test_drivers_multiply_to_the_ratio_of_described_machines():
    whole = {**FAST, "memory": "12 x 32 GB DDR4-2666", "os": "SLES 15", "compiler": "Intel C++ 19.1"}
    for pair in compare(whole, {**whole, "chips": 1}).pairs:
        product = float(np.prod([driver.factor for driver in pair.drivers]))
        assert product == pytest.approx(pair.ratio, rel=0.15)


def test_measurements_leave_less_correlation_and_a_narrower_ratio():
    champion = perfcast.load_champion(project().folder)
    score = champion.predict(FAST, neighbors=0, explain=False).machines[0].estimates[0]
    measured = [{**FAST, "suite": score.task, "score": score.median * 1.1}]
    later = {"when": "2026-11"}  # a year after the data, most of an error is unknown
    before, after = champion.compare([FAST, SLOW], **later), champion.compare([FAST, SLOW], measured=measured, **later)
    assert after.pairs[0].high / after.pairs[0].low < before.pairs[0].high / before.pairs[0].low
    assert after.machines[0].estimates[0].user_factor > 1


@pytest.mark.parametrize("machines", [[FAST], [FAST] * (MAX_COMPARED + 1), [FAST, {**SLOW, "suite": "CINT2017rate"}]])
def test_comparison_refuses_other_numbers_and_tasks(machines):
    with pytest.raises(UserError):
        compare(*machines)


def test_compare_command_prints_and_writes_what_python_answers(capsys):
    command = ["compare", "--results", str(project().results), "2 x Xeon Gold 6148", "Xeon Gold 6148; chips=1"]
    assert main([*command, "--when", "2024-01"]) == 0
    printed = capsys.readouterr().out
    for words in ("A: 2 x xeon gold 6148", "B: 1 x xeon gold 6148", "first is higher"):
        assert words in printed
    assert "drivers of the difference" not in printed
    assert main([*command, "--explain"]) == 0
    assert "drivers of the difference" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    expected = perfcast.load_champion(project().folder).compare([FAST, SLOW]).to_dict()
    assert answer == json.loads(json.dumps(expected))
    assert main([*command, "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(expected["pairs"])


def test_short_machines_have_counts_and_fields():
    entry = read_short_machine(
        "2 x EPYC 9654; memory=24 x 64 GB DDR5-4800; price=9", "processor", SERVERS.presentation.short_example
    )
    assert entry.values == {"processor": "2 x EPYC 9654", "memory": "24 x 64 GB DDR5-4800"}
    assert (entry.label, dict(entry.carried)) == ("2 x EPYC 9654", {"price": "9"})
    for text in ("", "EPYC 9654; two", "; chips=2"):
        with pytest.raises(UserError):
            read_short_machine(text, "processor", SERVERS.presentation.short_example)


def test_published_results_are_those_of_the_prediction():
    champion = perfcast.load_champion(project().folder)
    row = project().standard.frame.iloc[0]
    machine = {"processor": row["cpu_model"], "chips": float(row["chips"])}
    published = champion.published(machine)
    assert published and published == {
        each.task: each.published for each in champion.predict(machine).machines[0].estimates if each.published
    }
