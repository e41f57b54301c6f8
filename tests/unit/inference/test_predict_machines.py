"""Predictions of described machines: intervals, neighbors, drivers, published results, kinds never measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import (
    FEATURES,
    KNOWN,
    PLAIN,
    SUITES,
    is_possible,
    make_machines,
    predict,
    predict_parsed,
    project,
    read_cells,
)
from generated_results import fake_table
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.decisions.display import format_predictions
from perfcast.domains.servers.processors.facts import read_table
from perfcast.domains.servers.server_limits import _HYBRID
from perfcast.domains.servers.server_rules import SPEC_CPU2017 as RULES
from perfcast.experiment.champion import fit_all_rows
from perfcast.inference import PredictOptions, parse_machines, predict_machines, read_machines
from perfcast.inference.cells import Cells
from perfcast.inference.champion import Champion, build_features
from perfcast.inference.explain import shapley_values
from perfcast.inference.predict import BATCH_SIZE
from perfcast.inference.reference_data import ReferenceData, describing_columns
from perfcast.inference.rules.description_rules import find_rules
from perfcast.inference.suites import Suites
from perfcast.predictors.linear import Ridge
from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.utils.errors import UserError
from perfcast.utils.terminal_tables import format_number


def test_predict_machines_covers_all_tasks_by_default():
    answer = predict(
        [KNOWN, {"suite": "CINT2017rate", "chips": 1, "cores": 4, "clock": "2 GHz", "family": "Skylake-SP"}]
    )
    frame = answer.to_frame()
    assert frame["line"].tolist() == [1, 1, 1, 1, 2]
    assert frame["task"].tolist() == [*SUITES, "CINT2017rate"]
    assert (frame["estimate"] > 0).all()
    assert set(frame["champion"]) == {"ridge"}
    assert set(frame["unit"]) == {"ratio to reference"}
    assert frame["features_missing"].iloc[0] < frame["features_missing"].iloc[-1] < frame["features"].iloc[0]
    fewer = predict(KNOWN, options=replace(PLAIN, assume=True)).to_frame()
    assert (fewer["features_missing"] < frame["features_missing"].iloc[0]).all()


def test_intervals_widen_with_level_and_time():
    usual, surer = (predict(KNOWN, options=replace(PLAIN, level=level)).to_frame() for level in (0.9, 0.5))
    for frame in (usual, surer):
        assert (frame["low"] < frame["estimate"]).all() and (frame["estimate"] < frame["high"]).all()
        assert frame["in_domain_score"].between(0, 1).all()
    assert (surer["high"] < usual["high"]).all()
    later = predict(KNOWN, options=replace(PLAIN, when=pd.Timestamp("2040-01-01"))).to_frame()
    assert (later["in_domain_score"] <= usual["in_domain_score"]).all()
    assert later["estimate"].equals(usual["estimate"])


def test_an_entity_launched_after_the_newest_result_is_measured_on_the_day_of_its_launch():
    """The default month would be one before it existed, and the interval would know no later software."""
    launched = {**KNOWN, "launch_quarter": "2031-01"}
    default, then, before = (
        predict(launched, options=PredictOptions(when=None if day is None else pd.Timestamp(day))).to_frame()
        for day in (None, "2031-01-01", "2020-01-01")
    )
    assert default[["low", "high"]].equals(then[["low", "high"]])
    assert (before["high"] / before["low"] < default["high"] / default["low"]).all()


def test_uncalibrated_champion_gives_no_interval_and_no_neighbor():
    bare = replace(project().champion, calibrated=None, neighbor_index=None)
    answer = predict(KNOWN, bare, PredictOptions())
    frame = answer.to_frame()
    assert frame[["low", "high", "in_domain_score"]].isna().all(axis=None)
    assert not answer.machines[0].estimates[0].neighbors


def test_given_cells_reach_the_predictor_unchanged():
    """Described by all it has, a measured row is answered as the predictor answers the row itself."""
    champion = project().champion
    columns = [column.name for column in describing_columns(project().standard, FEATURES)]
    # Without a missing cell nothing is left to complete.
    rows = champion.reference_data.measured.frame.bfill().ffill().head(20)
    without = read_cells(rows.assign(mem_eff_mts=np.nan))
    rows = rows.assign(mem_eff_mts=RULES.typical_values.fill_implied(without)["mem_eff_mts"])
    table = build_features("spec_cpu2017", rows, champion.reference_data.measured.columns, FEATURES)
    expected = champion.predictor.predict(table.frame)["base_score"]
    assert rows[columns].notna().all(axis=None)
    try:
        answer = predict_parsed(make_machines(rows[columns]), champion)
    except UserError:  # filling crosswise may make machines that cannot be
        possible = [n for n in rows.index if is_possible(rows.loc[[n]])]
        answer = predict_parsed(make_machines(rows.loc[possible, columns]), champion)
        expected = expected[possible]
    assert len(answer.machines) > 5
    assert answer.to_frame()["estimate"].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9)


def test_more_cores_give_more_throughput():
    one_chip, two_chips = predict([{**KNOWN, "chips": chips, "suite": "CINT2017rate"} for chips in (1, 2)]).to_frame()[
        "estimate"
    ]
    assert two_chips > one_chip


def test_common_values_of_a_cpu_model_are_filled():
    champion = project().champion
    frame = champion.reference_data.measured.frame
    cpu_model = frame.loc[frame["l3_mb_per_chip"].notna(), "cpu_model"].iloc[0]
    others = replace(champion.reference_data.measured, frame=frame[frame["cpu_model"] != cpu_model])
    without = replace(champion, reference_data=ReferenceData(others, champion.reference_data.entity_facts))
    machine = {"processor": cpu_model, "suite": "CINT2017rate"}
    missing = [predict(machine, candidate).to_frame()["features_missing"].iloc[0] for candidate in (champion, without)]
    assert missing[0] < missing[1]


def test_predict_machines_covers_the_targets_of_the_task():
    table = fake_table(rows=60, seed=0)
    score, is_float = table.frame["score"], table.frame["suite"] == "float"
    frame = table.frame.assign(score=score.where(~is_float), second=score.where(is_float))
    second = Column("second", Kind.NUMERICAL, Role.TARGET, "workload", "points")
    standard = build_table("fake", frame, (*table.columns, second))
    predictor = fit_all_rows(standard, lambda seed: Ridge(), 0, None)
    champion = Champion("fake", "ridge", "quick", (), predictor, ReferenceData(standard, pd.DataFrame()))
    predicted = predict([{"part": "part 001", "chips": 2}], champion, PredictOptions()).to_frame()
    assert predicted[["task", "target", "unit"]].to_numpy().tolist() == [
        ["float", "second", "points"],
        ["integer", "score", ""],
    ]
    assert (predicted["estimate"] > 0).all()


def test_drivers_multiply_to_the_median():
    answer = predict(KNOWN, options=PredictOptions(neighbors=0))
    champion = project().champion
    for estimate in answer.machines[0].estimates:
        typical_row = champion.reference_data.measured.frame.iloc[[champion.typical_rows[estimate.task]]]
        table = build_features("spec_cpu2017", typical_row, champion.reference_data.measured.columns, FEATURES)
        start = champion.predictor.predict(table.frame)["base_score"].iloc[0]
        product = np.prod([driver.factor for driver in estimate.drivers])
        assert start * product == pytest.approx(estimate.median, rel=5e-3)
        assert estimate.typical_machine.score == typical_row["base_score"].iloc[0]


def test_dates_are_a_group_of_values_and_drivers():
    prediction = predict({**KNOWN, "test_month": "2016-01"}, options=PredictOptions(neighbors=0)).machines[0]
    groups = {value.column: value.group for value in prediction.values}
    assert groups["test_month"] == "dates"
    drivers = {driver.group for estimate in prediction.estimates for driver in estimate.drivers}
    assert "provenance" not in {*groups.values(), *drivers}


def test_shapley_values_share_an_interaction_equally():
    machine, typical_machine = (
        Cells({name: np.array([value]) for name, value in cells.items()}, np.zeros(1))
        for cells in ({"a": 2.0, "b": 3.0, "c": 9.0}, {"a": 0.0, "b": 0.0, "c": 9.0})
    )
    groups = {"first": ["a"], "second": ["b"], "third": ["c"]}

    def log_predict(cells):
        return (cells["a"] + cells["a"] * cells["b"])[:, None]

    contributions = shapley_values(machine, typical_machine, groups, log_predict)
    assert contributions[0, :, 0].tolist() == pytest.approx([5.0, 3.0, 0.0])


def test_batch_predictions_equal_single_ones():
    machines = [{**KNOWN, "chips": 1 + number % 2, "suite": "CINT2017rate"} for number in range(BATCH_SIZE + 3)]
    champion = project().champion
    described = parse_machines(read_machines(machines), champion)
    together = predict_parsed(described, champion)
    assert [prediction.line for prediction in together] == list(range(1, BATCH_SIZE + 4))
    last, single = together.machines[-1], replace(predict(machines[-1]).machines[0], line=BATCH_SIZE + 3)
    ((of_batch,), (alone,)) = last.estimates, single.estimates
    # vectors of another length are rounded otherwise in the last digit
    numbers = {name: pytest.approx(getattr(alone, name), rel=1e-14) for name in ("median", "low", "high")}
    assert {name: getattr(of_batch, name) for name in numbers} == numbers
    same = {name: getattr(alone, name) for name in numbers}
    assert replace(last, estimates=(replace(of_batch, **same),)) == single


OPTIONS = PredictOptions(neighbors=0, explain=False)
FIRST = ("suite", "cpu_model", "chips")


def describe_more_and_more(row, seed):
    """Return a measured machine once for every number of its fields, in a random order."""
    names = [column.name for column in describing_columns(project().standard, ())]
    cells = project().champion.reference_data.measured.frame.iloc[[row]][names]
    given = [name for name in names if name not in FIRST and cells[name].notna().iloc[0]]
    order = [*FIRST, *np.random.default_rng(seed).permutation(given)]
    counts = range(len(FIRST), len(order) + 1, 2)
    frame = cells.iloc[[0] * len(counts)].set_axis(range(1, len(counts) + 1)).copy()
    for name in names:
        known = np.array([name in order[:count] for count in counts])
        frame[name] = frame[name].where(known)
    return make_machines(frame)


@pytest.mark.parametrize("seed", range(2))
def test_a_field_that_the_measured_machine_has_never_lowers_the_score(seed):
    champion = project().champion
    measured = champion.reference_data.measured.frame
    possible = [row for row in range(len(measured)) if is_possible(measured.iloc[[row]])]
    row = int(np.random.default_rng(seed).choice(possible))
    answer = predict_parsed(describe_more_and_more(row, seed), champion, OPTIONS)
    scores = [machine.estimates[0].in_domain_score for machine in answer]
    assert len(scores) > 5
    assert np.diff(scores).min() > -1e-6


def test_a_field_that_no_measured_machine_has_lowers_the_score():
    (usual,) = predict(KNOWN, options=OPTIONS).machines
    (odd,) = predict({**KNOWN, "memory": "2 x 4 GB DDR3-1066"}, options=OPTIONS).machines
    assert all(
        far.in_domain_score < near.in_domain_score for far, near in zip(odd.estimates, usual.estimates, strict=True)
    )


def test_assumed_values_do_not_move_neighbors():
    options = replace(OPTIONS, neighbors=3)
    (assumed,) = predict(KNOWN, options=options).machines
    (bare,) = predict(KNOWN, options=replace(options, assume=False)).machines
    assert sum(estimate.assumed for estimate in assumed.estimates) > 0
    for first, second in zip(assumed.estimates, bare.estimates, strict=True):
        assert first.neighbors == second.neighbors
        assert first.in_domain_score == pytest.approx(second.in_domain_score)


def test_the_nearest_machines_have_the_cpu_model_that_was_given():
    champion = project().champion
    frame = champion.reference_data.measured.frame
    (answer,) = predict(KNOWN, options=replace(OPTIONS, neighbors=1)).machines
    for estimate in answer.estimates:
        same = frame[(frame["suite"] == estimate.task) & (frame["cpu_model"] == "xeon gold 6148")]
        if len(same):
            assert estimate.neighbors[0].machine.endswith("xeon gold 6148")


def test_numbers_of_numpy_are_numbers():
    (first,) = predict({**KNOWN, "chips": np.float64(2)}, options=OPTIONS)
    (second,) = predict({**KNOWN, "chips": np.int64(2)}, options=OPTIONS)
    assert first.estimates == second.estimates


CPU_MODELS = [(row["cpu_model"], row["family"]) for row in read_table("cpu_models.csv")]


def test_every_processor_of_the_facts_names_its_kinds_that_were_never_measured():
    champion = project().champion
    measured = champion.reference_data.measured.frame
    assert len(CPU_MODELS) > 250
    machines = [{"processor": name, "chips": 1, "suite": "CINT2017rate"} for name, _ in CPU_MODELS]
    answer = predict(machines, champion, PLAIN)
    text = " ".join(format_predictions(answer).split())
    frame = answer.to_frame().set_index("line")
    for prediction, (_, family) in zip(answer, CPU_MODELS, strict=True):
        notes = [note for note in prediction.notes if note.startswith("never measured: ")]
        assert bool(notes) == (family not in set(measured["family"]))
        for note in notes:
            assert f"family {family}" in note
            assert note in text
            assert note in frame.loc[prediction.line, "notes"]


HYBRID = [
    ("core ultra 9 285k", "Arrow Lake"),
    ("core i9-14900k", "Raptor Lake"),
    ("core i5-12600k", "Alder Lake"),
    ("core i5-12500h", "Alder Lake"),
    ("core i3-1215u", "Alder Lake"),
]
UNIFORM = [
    ("core i5-12400f", "Alder Lake"),
    ("core i5-12500te", "Alder Lake"),
    ("core i3-13100", "Raptor Lake"),
    ("pentium gold g7400", "Alder Lake"),
    ("xeon e-2488", "Raptor Lake E"),
    ("xeon 6780e", "Sierra Forest"),
]


def test_hybrid_processors_are_told_from_their_family_and_name():
    for is_hybrid, names in ((True, HYBRID), (False, UNIFORM)):
        for cpu_model, family in names:
            kinds = RULES.limits.list_kinds({"cpu_vendor": "Intel", "family": family, "cpu_model": cpu_model})
            assert (_HYBRID in kinds) == is_hybrid, cpu_model


def test_an_efficient_core_counts_less_in_rate_suites_and_as_a_whole_one_at_the_upper_end():
    champion = project().champion
    (with_deduction,) = predict({"processor": "Core Ultra 9 285K", "chips": 1}, champion, PLAIN).machines
    known = replace(champion)
    known.__dict__["measured_kinds"] = frozenset({_HYBRID})
    (without,) = predict({"processor": "Core Ultra 9 285K", "chips": 1}, known, PLAIN).machines
    for less, whole in zip(with_deduction.estimates, without.estimates, strict=True):
        factor = 1.5 if less.task.endswith("rate") else 1.0
        assert whole.median / less.median == pytest.approx(factor)
        assert whole.low / less.low == pytest.approx(factor)
        assert less.high == pytest.approx(whole.high)


def test_nothing_is_deducted_where_a_hybrid_was_measured_or_from_other_datasets():
    cells = {"cpu_model": np.array(["core ultra 9 285k"]), "family": np.array(["Arrow Lake"], dtype=object)}
    cells = Cells({**cells, "suite": np.array(["CFP2017rate"])}, np.array([0]))
    assert RULES.limits.find_deductions(cells, frozenset())[0] == pytest.approx(np.log(1.5))
    assert not RULES.limits.find_deductions(cells, frozenset({_HYBRID})).any()
    assert not find_rules("host_gemm").limits.find_deductions(cells, frozenset()).any()


def _measured_machine():
    """Return the most measured CPU model and number of chips of a suite, and its rows."""
    frame = project().champion.reference_data.measured.frame
    keys = ["suite", "cpu_model", "chips"]
    suite, cpu, chips = frame.groupby(keys).size().idxmax()
    rows = frame[(frame["suite"] == suite) & (frame["cpu_model"] == cpu) & (frame["chips"] == chips)]
    return {"processor": cpu, "chips": float(chips), "suite": suite}, rows


def _published(machine):
    return predict(machine).machines[0].estimates[0].published


def test_published_scores_are_those_of_the_same_cpu_model_and_chips():
    machine, rows = _measured_machine()
    predictions = predict([machine, {**machine, "base_mhz": 1234}], options=PredictOptions(neighbors=0))
    published = predictions.machines[0].estimates[0].published
    scores = rows["base_score"].dropna()
    assert published.count == len(scores) > 1
    assert (published.low, published.median, published.high) == (scores.min(), scores.median(), scores.max())
    assert sum(group.count for group in published.groups) == published.count
    assert {each.result for each in published.results} <= set(rows["result_id"])
    months = [each.published for each in published.results]
    assert months == sorted(months, reverse=True)
    newest, year = published.groups[0], rows["published_month"].dt.year
    is_alike = (year == year.max()) & (rows["compiler_vendor"] + " " + rows["compiler_major_minor"] == newest.setup)
    alike = rows.loc[is_alike, "base_score"]
    assert (newest.year, newest.count, newest.median) == (year.max(), len(alike), alike.median())
    frame = predictions.to_frame()
    assert frame["published"].tolist() == [len(scores)] * 2
    assert frame["published_median"].tolist() == [scores.median()] * 2
    other = predictions.machines[1].estimates[0].published
    assert published.differs == () and replace(other, differs=()) == published
    assert other.differs == (f"nominal clock {rows['base_mhz'].iloc[-1]:g}, not 1234",)
    assert frame["published_differs"].tolist() == ["", other.differs[0]]
    text = format_predictions(predictions, explain=True)
    assert "published results nearest to this machine" in text
    assert f"the newest published results have {other.differs[0]}" in " ".join(text.split())
    assert text.index("published results of this machine") < text.index("prediction\n")
    newest = published.results[0]
    (of_newest,) = rows.loc[rows["result_id"] == newest.result, "tester"]
    assert newest.tester == of_newest
    assert f"{newest.result}, tested by {of_newest}, {newest.published}" in text


def test_published_results_match_everything_given():
    machine, rows = _measured_machine()
    given = float(rows["dimm_count"].dropna().value_counts().index[-1])
    published = _published({**machine, "dimm_count": given})
    assert published.count == (rows["dimm_count"].isin([given]) | rows["dimm_count"].isna()).sum()
    assert published.differs == ()


def test_published_results_of_other_numbers_of_cores_are_of_other_machines():
    machine, rows = _measured_machine()
    cores = float(rows["cores_per_chip_of_cpu_model"].iloc[0])
    described = read_machines({**machine, "cores": cores / 2})
    fewer, whole = predict_machines(described, Suites(project().champion), PLAIN).machines
    assert fewer.estimates[0].published is None and whole.estimates[0].published.count == len(rows)


@pytest.mark.parametrize(
    "machine",
    [
        {"processor": KNOWN["processor"], "suite": "CINT2017rate"},
        {"cores": 4, "clock": "2 GHz", "family": "Skylake-SP", "chips": 1, "suite": "CINT2017rate"},
    ],
    ids=["chips are assumed", "new CPU model"],
)
def test_nothing_is_published_of_a_machine_that_is_not_known_exactly(machine):
    assert _published(machine) is None


def _shifted(factor):
    """Return the project's champion with the published scores of the measured machine changed, and that machine."""
    machine, rows = _measured_machine()
    champion = project().champion
    measured = champion.reference_data.measured
    frame = measured.frame.assign(base_score=measured.frame["base_score"].where(~measured.frame.index.isin(rows.index)))
    frame["base_score"] = frame["base_score"].fillna(measured.frame["base_score"] * factor)
    reference_data = replace(champion.reference_data, measured=replace(measured, frame=frame))
    return replace(champion, reference_data=reference_data), machine


@settings(max_examples=10, deadline=None)
@given(st.floats(0.25, 4.0), st.booleans())
def test_published_results_outside_the_interval_are_named_first(factor, brief):
    champion, machine = _shifted(factor)
    compiler = _measured_machine()[1][["compiler_vendor", "compiler_major_minor"]].iloc[-1]
    machine |= compiler.to_dict()
    predictions = predict(machine, champion, PLAIN if brief else PredictOptions(neighbors=0))
    (estimate,) = predictions.machines[0].estimates
    is_outside = not estimate.low <= estimate.published.median <= estimate.high
    assert bool(estimate.published_outside) == is_outside
    text = " ".join(format_predictions(predictions).split())
    first = f"{predictions.machines[0].machine}: published results lie outside the interval ("
    assert text.startswith(first) == is_outside
    assert predictions.to_frame()["published_outside"].iloc[0] == estimate.published_outside
    if is_outside:
        note = predictions.machines[0].notes[0]
        shown = f"median {format_number(estimate.published.median)}, estimate {format_number(estimate.median)}"
        assert note.endswith(f"{shown}): trust them")
        assert f"{shown}): trust them" in text
        assert predictions.to_frame()["notes"].iloc[0].startswith(note)


def test_published_results_with_other_software_are_compared_too():
    champion, machine = _shifted(3.0)
    predictions = predict({**machine, "compiler": "GCC 1.0"}, champion, PLAIN)
    (estimate,) = predictions.machines[0].estimates
    assert estimate.published.differs
    assert "with other software" in estimate.published_outside
    (other,) = predict({**machine, "base_mhz": 1234}, champion, PLAIN).machines[0].estimates
    assert other.published_outside == ""
    assert predictions.machines[0].notes[0].endswith("compare the software")
