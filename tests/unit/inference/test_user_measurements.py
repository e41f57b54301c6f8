"""What a few measured scores say of other forecasts."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from forecasting_project import SUITES, project

from perfcast.cli.main import main
from perfcast.inference import PredictOptions, parse_machines, predict_machines, read_machines
from perfcast.inference.user_measurements import MAX_MEASUREMENTS, read_measurements
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import UncertaintyModel
from perfcast.uncertainty.correlation import ErrorCorrelation, ErrorRows, shared_labels
from perfcast.utils.errors import UserError

MACHINE = {"processor": "Xeon Gold 6148", "chips": 2}
PLAIN = PredictOptions(neighbors=0, explain=False)


def errors(labels, questions, typical=1.0):
    frame = pd.DataFrame(labels, columns=["everything", "family", "part"])
    return ErrorRows(frame, np.array(questions), np.full(len(frame), typical))


def drawn(seed):
    """Draw errors of 6 backtests x 8 families x 5 parts x 2 questions, with known components."""
    random = np.random.default_rng(seed)
    rows = [
        (time, family, part, question)
        for time in range(6)
        for family in range(8)
        for part in range(5)
        for question in "ab"
    ]
    shared = {name: {} for name in ("time", "family", "part", "question")}
    sizes = {"time": 0.05, "family": 0.04, "part": 0.0, "question": 0.03}

    def component(name, key):
        return shared[name].setdefault(key, random.normal(0, sizes[name])) if sizes[name] else 0.0

    residuals = [
        component("time", time)
        + component("family", (time, family))
        + component("question", (time, question))
        + random.normal(0, 0.02)
        for time, family, part, question in rows
    ]
    labels = pd.DataFrame(
        [("everything", f"{time}-{family}", f"{time}-{family}-{part}") for time, family, part, _ in rows],
        columns=["everything", "family", "part"],
    )
    return np.array(residuals), labels, np.array([row[3] for row in rows]), np.array([row[0] for row in rows])


def fitted(seed=0):
    residuals, labels, questions, backtests = drawn(seed)
    typical = np.full(len(residuals), 0.07)
    return ErrorCorrelation().fit(residuals, labels, questions, backtests=backtests, expected_errors=typical), residuals


def test_components_are_found_again():
    found = [fitted(seed)[0] for seed in range(8)]
    family = np.mean([one.shared["family"] for one in found])
    noise = np.mean([one.noise for one in found])
    assert family == pytest.approx(0.04**2, rel=0.35)
    assert noise == pytest.approx(0.02**2, rel=0.5)
    assert all(value >= 0 for one in found for value in (*one.shared.values(), *one.per_output.values()))


def test_the_components_add_up_to_the_size_of_the_errors():
    found, residuals = fitted()
    asked = errors([("everything", "f", "p")], ["a"], typical=0.07)
    assert found.variance(asked)[0] == pytest.approx(np.mean(residuals**2))


def by_hand():
    correlation = ErrorCorrelation()
    correlation.shared = {"everything": 1.0, "family": 2.0, "part": 4.0}
    correlation.per_output = {"everything": 0.0, "family": 0.5, "part": 0.0}
    correlation.noise, correlation.reference = 0.5, 1.0
    return correlation


def test_what_is_nearer_is_moved_more_and_surer():
    known = errors([("everything", "f", "p")], ["a"])
    asked = errors(
        [("everything", "f", "p"), ("everything", "f", "p"), ("everything", "f", "q"), ("everything", "g", "r")],
        ["a", "b", "b", "b"],
    )
    shift, left = by_hand().predict(known, np.array([0.8]), asked)
    assert shift == pytest.approx(0.8 * np.array([7.5, 7.0, 3.0, 1.0]) / 8.0)
    assert left == pytest.approx(np.sqrt(1 - np.array([7.5, 7.0, 3.0, 1.0]) ** 2 / 64))


def test_what_is_known_well_is_hardly_moved():
    rows = [("everything", "f", "p")]
    well, badly = (
        by_hand().predict(errors(rows, ["a"], typical), np.array([0.8]), errors(rows, ["a"], typical))[0][0]
        for typical in (0.1, 2.0)
    )
    assert well < 0.2 * badly


def test_more_measurements_say_more():
    asked = errors([("everything", "f", "q")], ["b"])
    left = [
        by_hand().predict(
            errors([("everything", "f", f"p{n}") for n in range(count)], ["a"] * count), np.zeros(count), asked
        )[1][0]
        for count in (1, 3, 9)
    ]
    assert left == sorted(left, reverse=True)


def test_labels_are_those_of_the_entity_and_its_slices():
    table = project().champion.reference_data.measured
    labels = shared_labels(table)
    assert list(labels.columns) == ["everything", "cpu_vendor", "family", "cpu_model", "identity"]
    assert labels.notna().all(axis=None)
    assert labels["identity"].nunique() > labels[table.column_of(Tag.ENTITY)].nunique()


def test_it_is_saved_with_the_calibration(tmp_path):
    calibrated = project().champion.calibrated
    calibrated.save(tmp_path)
    assert UncertaintyModel.load(tmp_path).correlation.to_state() == calibrated.correlation.to_state()


def asked(measured, machine=MACHINE):
    champion = project().champion
    own = read_measurements(read_machines(measured), champion, machine)
    return predict_machines(parse_machines(read_machines(machine), champion), champion, PLAIN, own).machines[0]


def plain(machine=MACHINE):
    champion = project().champion
    return predict_machines(parse_machines(read_machines(machine), champion), champion, PLAIN).machines[0]


def test_a_measured_score_moves_the_forecasts_towards_it_and_narrows_them():
    before = {one.task: one for one in plain().estimates}
    score = 1.2 * before["CINT2017rate"].median
    after = {one.task: one for one in asked({"suite": "CINT2017rate", "score": score}).estimates}
    assert list(after) == SUITES
    assert before["CINT2017rate"].median < after["CINT2017rate"].median < score
    for task in SUITES:
        assert after[task].own == pytest.approx(after[task].median / before[task].median)
        assert after[task].high / after[task].low <= before[task].high / before[task].low
    assert after["CINT2017rate"].own == max(one.own for one in after.values())


def test_scores_under_the_targets_name_and_of_siblings_are_read():
    sibling = {"processor": "Xeon Gold 6148", "chips": 1, "suite": "CINT2017rate", "base_score": "100"}
    assert asked(sibling).estimates != asked({**sibling, "base_score": 120}).estimates


def test_columns_of_the_dataset_that_no_forecast_reads_are_passed_over():
    plainly = {"suite": "CINT2017rate", "score": 100}
    assert asked({**plainly, "tester": "me", "peak_score": 120}).estimates == asked(plainly).estimates


def test_a_score_far_from_its_forecast_is_doubted_aloud():
    assert "times its forecast" in asked({"suite": "CINT2017rate", "score": 1e5}).notes[0]
    assert not asked({"suite": "CINT2017rate", "score": plain().estimates[2].median}).notes


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ({"suite": "CINT2017rate"}, "must have a score"),
        ({"score": 100}, "must name its suite"),
        ({"suite": "CINT2017rate", "score": -1}, "score must be between"),
        ({"suite": "CINT2017rate", "score": "fast"}, "score must be a number"),
        ([{"suite": "CINT2017rate", "score": 1}] * (MAX_MEASUREMENTS + 1), "at most 500"),
        ({"suite": "CINT2017rate", "score": 100, "bytes": 3}, "'bytes'"),
    ],
)
def test_what_cannot_be_used_is_refused(measured, said):
    with pytest.raises(UserError) as error:
        asked(measured)
    assert said in str(error.value)


def test_the_command_tells_what_the_measurements_changed(tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("suite,score\nCINT2017rate,140\n")
    given = ["predict", "--results", str(project().results), "--processor", "Xeon Gold 6148", "--chips", "2"]
    assert main([*given, "--measured", str(tmp_path / "mine.csv")]) == 0
    assert "changed by your own measurements: CFP2017rate" in capsys.readouterr().out


def test_candidates_and_combinations_are_corrected_as_single_forecasts_are(tmp_path, capsys):
    score = 1.2 * plain().estimates[2].median
    (tmp_path / "mine.csv").write_text(f"processor,chips,suite,score\nXeon Gold 6148,2,CINT2017rate,{score}\n")
    (tmp_path / "candidates.csv").write_text("name,processor,chips\nmine,Xeon Gold 6148,2\n")
    expected = asked({**MACHINE, "suite": "CINT2017rate", "score": score}).estimates[2]
    given = ["--champion", str(project().folder), "--measured", str(tmp_path / "mine.csv"), "--json"]
    commands = {
        "rank": [str(tmp_path / "candidates.csv"), "--target", "CINT2017rate >= 1"],
        "what-if": ["--processor", "Xeon Gold 6148", "--chips", "2", "--vary", "chips=2", "--task", "CINT2017rate"],
    }
    told = {}
    for name, options in commands.items():
        assert main([name, *options, *given]) == 0
        told[name] = json.loads(capsys.readouterr().out)
    (combination,) = told["what-if"]["combinations"]
    # what is not varied is held as it was completed for the task, so this is not quite the machine of the others
    assert combination["estimates"][0]["own"] == pytest.approx(expected.own, rel=0.02)
    assert told["rank"]["candidates"][0]["score"] == pytest.approx(expected.median)
