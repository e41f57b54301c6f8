"""Machines without their number of processors: an answer for each number, and assumed values that may be typed back."""

import numpy as np
import pytest
from champion_project import KNOWN, PLAIN, SUITES, make_cells, project
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from machine_requests import requests

from perfcast.decisions.criteria import read_request
from perfcast.decisions.ranking import rank_machines
from perfcast.domains.servers.server_rules import SPEC_CPU2017
from perfcast.experiment.described import describe_rows
from perfcast.inference import MachineEntry, read_machines
from perfcast.inference.cells import ASSUMED, GIVEN
from perfcast.inference.draws import DrawPredictions, impute_draws
from perfcast.inference.parse import parse_batch, parse_machines
from perfcast.inference.predict import PredictOptions, predict_batch
from perfcast.inference.user_measurements import read_measurements
from perfcast.schema.table import Tag

SETTINGS = settings(max_examples=30, deadline=None, phases=[Phase.reuse, Phase.generate])
BRIEF = PredictOptions(neighbors=0, explain=False)


def answers(machines, options=BRIEF):
    return predict_batch(read_machines(machines), project().champion, options).machines


def draw(machines):
    champion = project().champion
    return DrawPredictions(impute_draws(machines, champion), champion)


def parse(machine):
    """Return a generated machine once for each number of processors; one that breaks a limit is left out."""
    entries = [MachineEntry(1, "machine 1", machine), MachineEntry(2, "machine 2", KNOWN)]
    machines = parse_batch(entries, project().champion)
    described = machines.take(np.array([machines.line_of(key) == 1 for key in machines.keys]))
    assume(len(described.cells.index))
    return described


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
    assert SPEC_CPU2017.list_alternatives(make_cells(**cells)) == [numbers]


def test_a_machine_without_chips_is_answered_for_each_number_with_its_own_label_and_interval():
    alone = {"processor": KNOWN["processor"]}
    first, second, other = answers([alone, KNOWN])
    assert [each.line for each in (first, second, other)] == [1, 1, 2]
    assert [each.machine[:4] for each in (first, second)] == ["1 x ", "2 x "]
    assert second.estimates == other.estimates
    assert first.notes[-1] == second.notes[-1] == "chips is not given: there is an answer for 1 and 2"
    assert len(first.estimates) == len(SUITES)
    assert all(a.high < 1.5 * b.median for a, b in zip(first.estimates[:1], second.estimates[:1], strict=True))


def test_numbers_that_break_a_limit_are_left_out():
    cells = {"processor": KNOWN["processor"], "cores_enabled_total": 40}
    (only,) = answers(cells)
    assert only.machine.startswith("2 x ")
    refused, _ = answers([{**cells, "cores_enabled_total": 400}, KNOWN])
    assert refused.status == "refused"


def test_a_measured_score_belongs_to_the_nearest_alternative():
    _, second = answers({"processor": KNOWN["processor"], "suite": "CINT2017rate"})
    score = 1.05 * second.estimates[0].median
    machine = {"processor": KNOWN["processor"], "suite": "CINT2017rate", "score": score}
    measured = read_measurements(read_machines([machine, {**machine, "chips": 2}]), project().champion)
    assert measured.residuals == pytest.approx([np.log(1.05)] * 2)


def test_every_cpu_model_has_an_answer_that_agrees_with_the_results_of_its_label():
    frame = project().champion.reference_data.measured.frame
    names = sorted(frame["cpu_model"].astype(str).unique())
    by_label = frame.groupby([frame["cpu_model"].astype(str), "chips", "suite"], observed=True)["base_score"].median()
    machines = parse_machines(read_machines([{"processor": name} for name in names]), project().champion)
    drawn = draw(machines)
    cells = drawn.completed.cells
    keys = zip(cells["cpu_model"], cells["chips"], cells["suite"], strict=True)
    published = np.array([by_label.get(key, np.nan) for key in keys])
    gaps = np.abs(np.log(drawn.medians[:, 0] / published))
    assert np.isfinite(gaps).sum() > 100
    # a mixture of one and two processors would be a factor of 2 away for all of a CPU model
    assert np.nanmedian(gaps) < np.log(1.15)


@given(machine=requests())
@SETTINGS
def test_all_tasks_of_an_answer_are_of_one_machine(machine):
    measured = project().champion.reference_data.measured
    group = next(column.group for column in measured.columns if Tag.ENTITY in column.tags)
    identifying = [*measured.select(group=group), "chips", "system_stem"]
    frame = draw(parse(machine)).completed.frame
    texts = frame[identifying].astype(object).fillna("-")
    assert (texts.groupby(level=0).nunique() == 1).all(axis=None)


@given(machine=requests())
@SETTINGS
def test_the_number_of_processors_typed_back_gives_the_same_answer(machine):
    assumed = predict_batch([MachineEntry(1, "m", machine), MachineEntry(2, "m", KNOWN)], project().champion, BRIEF)
    numbers = parse(machine).cells["chips"].tolist()
    of_machine = [each for each in assumed if each.line == 1 and each.status == "ok"]
    typed = predict_batch(
        [MachineEntry(number, "m", {**machine, "chips": chips}) for number, chips in enumerate([*numbers, 1e3])],
        project().champion,
        BRIEF,
    )
    assert len(of_machine) == len(numbers)
    for before, after in zip(of_machine, typed, strict=False):
        assert (before.machine, before.estimates) == (after.machine, after.estimates)


@given(machine=requests())
@SETTINGS
def test_assumed_values_typed_back_are_accepted_and_lead_into_the_interval(machine):
    champion = project().champion
    before = draw(parse(machine))
    frame, names = before.completed.frame, list(before.completed.cells)
    is_known = before.completed.has_origin(ASSUMED, GIVEN)
    typed = [
        next(
            describe_rows(
                frame.iloc[[row]],
                champion.reference_data.measured,
                [
                    name
                    for name, known in zip(names, is_known[row], strict=True)
                    if known and name in champion.fields.columns
                ],
            )
        )._replace(line=row)
        for row in range(len(frame))
    ]
    batch = parse_batch([*typed, MachineEntry(len(frame), "m", KNOWN)], champion)
    assert dict(batch.refusals) == {}
    after = draw(batch.take(np.arange(len(frame))))
    intervals, later = before.intervals(0), after.intervals(0)
    shift = np.log(after.medians[:, 0] / before.medians[:, 0])
    assert (shift <= intervals["above"].to_numpy() + 1e-9).all()
    assert (-shift <= intervals["below"].to_numpy() + 1e-9).all()
    # the interval has the errors of the draw that is shown; a draw may leave open what another donor then gives
    is_same = ~after.completed.has_origin(ASSUMED).any(axis=1)
    assert (later["expected_error"][is_same] <= intervals["expected_error"][is_same] + 1e-9).all()


@given(machine=requests(), task=st.sampled_from([*SUITES, None]))
@SETTINGS
def test_all_assumed_values_of_an_answer_typed_back_together_keep_it(machine, task):
    """In one task the estimate stays inside the interval, which is no wider; a measured CPU model keeps its score.

    An answer of several tasks lists only what all of them assume, and the rest is drawn again: its intervals overlap.
    Facts of a new CPU model that are typed count as distance, assumed ones do not: its score may fall.
    """
    champion, options = project().champion, PredictOptions(neighbors=0)
    is_measured = machine.get("processor") in set(champion.reference_data.measured.frame["cpu_model"])
    described = machine if task is None else {**machine, "suite": task}
    entries = [MachineEntry(1, "m", described), MachineEntry(2, "m", KNOWN)]
    answered = [each for each in predict_batch(entries, champion, options) if each.line == 1 and each.status == "ok"]
    assume(answered)
    typed = [
        described | {value.column: value.value for value in before.values if value.origin in (ASSUMED, GIVEN)}
        for before in answered
    ]
    for before, after in zip(answered, predict_batch(read_machines([*typed, KNOWN]), champion, options), strict=False):
        assert after.status == "ok", after.message
        for first, second in zip(before.estimates, after.estimates, strict=True):
            assert not is_measured or second.in_domain_score >= first.in_domain_score - 1e-9
            if task:
                assert first.low * (1 - 1e-9) <= second.median <= first.high * (1 + 1e-9)
            else:
                assert first.low <= second.high and second.low <= first.high
            # a draw may leave open what another donor then gives
            if task and not second.assumed:
                assert second.high / second.low <= 1.01 * first.high / first.low  # quantiles are interpolated


def test_without_assumptions_the_numbers_are_answered_as_well():
    assert [each.machine[:4] for each in answers({"processor": KNOWN["processor"]}, PLAIN)] == ["1 x ", "2 x "]


def test_a_ranked_candidate_with_a_price_must_give_its_number_of_processors():
    alone = {"processor": KNOWN["processor"]}
    entries = read_machines([{**alone, "name": "A"}, {**alone, "name": "B", "price": 100}, {**KNOWN, "price": 90}])
    champion = project().champion
    ranking = rank_machines(entries, champion, read_request([], champion))
    assert {(each.line, each.name) for each in ranking.candidates} >= {(1, "A, chips 1"), (1, "A, chips 2")}
    (refused,) = ranking.refused
    assert (refused.line, refused.name) == (2, "machine 2 (B)")
    assert refused.message == "a candidate with a price must give chips, but machine 2 (B) has none; add chips"


def test_memory_in_the_package_counts_in_the_total():
    stacked = SPEC_CPU2017.fill_implied(make_cells(dimm_count=16.0, dimm_gb=64.0, hbm_gb=128.0))
    assert stacked["mem_total_gb"][0] == 1152
    alone = SPEC_CPU2017.fill_implied(make_cells(dimm_count=0.0, hbm_gb=128.0))
    assert alone["mem_total_gb"][0] == 128
    assert SPEC_CPU2017.fill_implied(make_cells(dimm_count=16.0, mem_total_gb=1152.0, hbm_gb=128.0))["dimm_gb"][0] == 64
