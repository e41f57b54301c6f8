"""Machines without their number of processors: an answer for each number, and assumed values that may be typed back."""

import numpy as np
import pytest
from champion_project import KNOWN, PLAIN, SUITES, TITLES, make_cells, project
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from machine_requests import requests

from perfcast.decisions.criteria import read_request
from perfcast.decisions.ranking import rank_machines
from perfcast.domains.servers.server_rules import SPEC_CPU2017
from perfcast.inference import read_machines
from perfcast.inference.cells import ASSUMED, GIVEN
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import predict_machines
from perfcast.inference.suites import Suites
from perfcast.inference.user_measurements import read_measurements

SETTINGS = settings(max_examples=4, deadline=None, phases=[Phase.reuse, Phase.generate])
MACHINES = st.lists(requests(), min_size=8, max_size=8)
BRIEF = PredictOptions(neighbors=0, explain=False)
PAIRED = {"processor": "EPYC 7742"}
"""A CPU model with 64 cores for machines with one or two processors."""


def answers(machines, options=BRIEF):
    return predict_machines(read_machines(machines), Suites(project().champion), options).machines


@pytest.mark.parametrize(
    ("name", "most", "numbers"),
    [
        ("epyc 9654p", 1, (1,)),
        ("xeon gold 6148", 4, (1, 2, 4)),
        ("xeon platinum 8490h", 8, (1, 2, 4, 8)),
        ("epyc 9654", np.nan, (1, 2)),
        ("epyc 8534p", np.nan, (1,)),
        ("core i7-4790", np.nan, (1,)),
        ("xeon e-2488", np.nan, (1,)),
        ("xeon e5-2690 v4", np.nan, (1, 2)),
        (None, np.nan, (1, 2)),
    ],
)
def test_the_numbers_that_a_cpu_model_is_sold_for(name, most, numbers):
    cells = {"max_sockets": most} | ({} if name is None else {"cpu_model": name})
    assert SPEC_CPU2017.typical_values.list_alternatives(make_cells(**cells)) == [numbers]


def test_a_machine_without_chips_is_answered_for_each_number_with_its_own_label_and_interval():
    first, second, other = answers([PAIRED, {**PAIRED, "chips": 2}])
    assert [each.line for each in (first, second, other)] == [1, 1, 2]
    assert [each.machine[:4] for each in (first, second)] == ["1 x ", "2 x "]
    assert second.estimates == other.estimates
    assert first.notes[-1] == second.notes[-1] == "chips is not given: there is an answer for 1 and 2"
    assert len(first.estimates) == len(SUITES)
    assert first.estimates[0].high < 1.5 * second.estimates[0].median
    assert [each.machine[:4] for each in answers(PAIRED, PLAIN)] == ["1 x ", "2 x "]


def test_fewer_cores_than_the_cpu_model_has_are_answered_with_and_without_the_others():
    whole = project().champion.reference_data.facts_by_model.frame["cores_per_chip_of_cpu_model"]
    name = KNOWN["processor"].casefold()
    cores = float(whole[name])
    fewer, every, other = answers([{**KNOWN, "cores": cores - 1}, KNOWN])
    assert [each.line for each in (fewer, every, other)] == [1, 1, 2]
    assert fewer.machine == f"2 x {name} with {cores - 1:g} of {cores:g} cores"
    assert every.machine == other.machine
    fact = f"{cores - 1:g} is fewer than the {cores:g} of {name}"
    assert fewer.notes[-1] == every.notes[-1] == f"cores: {fact}: there is an answer for {cores - 1:g} and {cores:g}"
    assert fewer.estimates[0].median < every.estimates[0].median
    (only,) = answers({**KNOWN, "cores": cores})
    assert only.estimates == every.estimates


def test_numbers_that_break_a_limit_are_left_out():
    cells = {**PAIRED, "cores_enabled_total": 128}
    (only,) = answers(cells)
    assert only.machine.startswith("2 x ")
    refused, _ = answers([{**cells, "cores_enabled_total": 1280}, KNOWN])
    assert refused.status == "refused"


def test_a_measured_score_belongs_to_the_nearest_alternative():
    _, second = answers({**PAIRED, "suite": "CINT2017rate"})
    score = 1.05 * second.estimates[0].median
    machine = {**PAIRED, "suite": "CINT2017rate", "score": score}
    measured = read_measurements(read_machines([machine, {**machine, "chips": 2}]), project().champion)
    assert measured.known.errors == pytest.approx([np.log(1.05)] * 2)


def test_every_cpu_model_has_an_answer_that_agrees_with_the_results_of_its_label():
    frame = project().champion.reference_data.measured.frame
    keys = [frame["cpu_model"].astype(str), "chips", "suite"]
    by_label = frame.groupby(keys, observed=True)["base_score"].median()
    names = sorted(frame["cpu_model"].astype(str).unique())
    table = predict_machines(
        read_machines([{"processor": name} for name in names]), Suites(project().champion), BRIEF
    ).to_frame()
    gaps = []
    for name, suite, machine, estimate in table[["line", "task", "machine", "estimate"]].itertuples(index=False):
        label = (names[name - 1], float(machine.partition(" x ")[0]), SUITES[TITLES.index(suite)])
        gaps += [abs(np.log(estimate / by_label[label]))] if label in by_label else []
    assert len(gaps) > 100
    # a mixture of one and two processors would be a factor of 2 away for all of a CPU model
    assert np.median(gaps) < np.log(1.15)


@given(machines=MACHINES)
@SETTINGS
def test_the_number_of_processors_typed_back_gives_the_same_answer(machines):
    before = [each for each in answers([*machines, KNOWN])[:-1] if each.status == "ok"]
    typed = [{**machines[each.line - 1], "chips": each.machine.partition(" x ")[0]} for each in before]
    after = answers([*typed, KNOWN])[:-1]
    assert [(each.machine, each.estimates) for each in after] == [(each.machine, each.estimates) for each in before]


@given(machines=MACHINES, task=st.sampled_from([*SUITES, None]))
@SETTINGS
def test_all_assumed_values_of_an_answer_typed_back_together_keep_it(machines, task):
    """In one task the estimate stays inside the interval, which is no wider; a measured CPU model keeps its score.

    An answer of several tasks lists only what all of them assume, and the rest is drawn again: its intervals overlap.
    Facts of a new CPU model that are typed count as distance, assumed ones do not: its score may fall.
    """
    options, measured = PredictOptions(neighbors=0), project().champion.reference_data.measured.frame
    described = [{**machine, **({"suite": task} if task else {})} for machine in machines]
    answered = [each for each in answers([*described, KNOWN], options)[:-1] if each.status == "ok"]
    typed = [
        described[each.line - 1] | {cell.column: cell.value for cell in each.values if cell.origin in (ASSUMED, GIVEN)}
        for each in answered
    ]
    for before, after in zip(answered, answers([*typed, KNOWN], options), strict=False):
        assert after.status == "ok", after.message
        is_measured = described[before.line - 1].get("processor") in set(measured["cpu_model"])
        for first, second in zip(before.estimates, after.estimates, strict=True):
            assert not is_measured or second.in_domain_score >= first.in_domain_score - 1e-9
            if task:
                assert first.low * (1 - 1e-9) <= second.median <= first.high * (1 + 1e-9)
            else:
                assert first.low <= second.high and second.low <= first.high
            # a draw may leave open what another donor then gives
            if task and not second.assumed:
                assert second.high / second.low <= 1.01 * first.high / first.low  # quantiles are interpolated


def test_a_ranked_candidate_with_a_price_must_give_its_number_of_processors():
    alone = {"processor": KNOWN["processor"]}
    entries = read_machines([{**alone, "name": "A"}, {**alone, "name": "B", "price": 100}, {**KNOWN, "price": 90}])
    champion = project().champion
    ranking = rank_machines(entries, Suites(champion), read_request([], Suites(champion)))
    assert {(each.line, each.name) for each in ranking.candidates} >= {(1, "A, chips 1"), (1, "A, chips 2")}
    (refused,) = ranking.refused
    assert (refused.line, refused.name) == (2, "machine 2 (B)")
    assert refused.message == "a candidate with a price must give chips, but machine 2 (B) has none; add chips"
