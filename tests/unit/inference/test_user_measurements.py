"""Corrections of predictions by a few scores that the user measured."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import SUITES, project
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.cli.main import main
from perfcast.inference import PredictOptions, parse_machines, predict_machines, read_machines
from perfcast.inference.user_measurements import MAX_MEASUREMENTS, read_measurements
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import UncertaintyModel
from perfcast.uncertainty.correlation import ErrorCorrelation, ErrorRows, shared_labels
from perfcast.utils.errors import UserError

MACHINE = {"processor": "Xeon Gold 6148", "chips": 2}
PLAIN = PredictOptions(neighbors=0, explain=False)


def errors(labels, outputs, expected_error=1.0):
    frame = pd.DataFrame(labels, columns=["everything", "family", "part"])
    return ErrorRows(frame, np.array(outputs), np.full(len(frame), expected_error))


def drawn(seed):
    """Draw errors of 6 backtests x 8 families x 5 CPU models x 2 outputs, with known components."""
    random = np.random.default_rng(seed)
    rows = [
        (time, family, part, output) for time in range(6) for family in range(8) for part in range(5) for output in "ab"
    ]
    shared = {name: {} for name in ("time", "family", "part", "output")}
    sizes = {"time": 0.05, "family": 0.04, "part": 0.0, "output": 0.03}

    def component(name, key):
        return shared[name].setdefault(key, random.normal(0, sizes[name])) if sizes[name] else 0.0

    residuals = [
        component("time", time)
        + component("family", (time, family))
        + component("output", (time, output))
        + random.normal(0, 0.02)
        for time, family, part, output in rows
    ]
    labels = pd.DataFrame(
        [("everything", f"{time}-{family}", f"{time}-{family}-{part}") for time, family, part, _ in rows],
        columns=["everything", "family", "part"],
    )
    return np.array(residuals), labels, np.array([row[3] for row in rows]), np.array([row[0] for row in rows])


def fitted(seed=0):
    residuals, labels, outputs, backtests = drawn(seed)
    expected_error = np.full(len(residuals), 0.07)
    return ErrorCorrelation().fit(
        residuals, labels, outputs, backtests=backtests, expected_errors=expected_error
    ), residuals


def test_error_correlation_recovers_known_components():
    correlations = [fitted(seed)[0] for seed in range(8)]
    family = np.mean([correlation.shared["family"] for correlation in correlations])
    noise = np.mean([correlation.noise for correlation in correlations])
    assert family == pytest.approx(0.04**2, rel=0.35)
    assert noise == pytest.approx(0.02**2, rel=0.5)
    assert all(
        value >= 0
        for correlation in correlations
        for value in (*correlation.shared.values(), *correlation.per_output.values())
    )


def test_variance_is_the_mean_squared_error():
    correlation, residuals = fitted()
    predicted = errors([("everything", "f", "p")], ["a"], expected_error=0.07)
    assert correlation.variance(predicted)[0] == pytest.approx(np.mean(residuals**2))


def by_hand():
    correlation = ErrorCorrelation()
    correlation.shared = {"everything": 1.0, "family": 2.0, "part": 4.0}
    correlation.per_output = {"everything": 0.0, "family": 0.5, "part": 0.0}
    correlation.noise, correlation.reference = 0.5, 1.0
    return correlation


def test_nearer_predictions_shift_more_and_narrow_more():
    known = errors([("everything", "f", "p")], ["a"])
    predicted = errors(
        [("everything", "f", "p"), ("everything", "f", "p"), ("everything", "f", "q"), ("everything", "g", "r")],
        ["a", "b", "b", "b"],
    )
    shift, left = by_hand().predict(known, np.array([0.4]), predicted)
    assert shift == pytest.approx(0.4 * np.array([7.5, 7.0, 3.0, 1.0]) / 8.0)
    assert left == pytest.approx(np.sqrt(1 - np.array([7.5, 7.0, 3.0, 1.0]) ** 2 / 64))


@st.composite
def paired_errors(draw):
    """Draw errors of CPU models in three outputs: the second follows the first, or opposes it; the third is alone."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    follows, count = draw(st.sampled_from([1.0, -1.0])), draw(st.integers(40, 120))
    first = random.normal(0, 0.1, count)
    means = {"a": first, "b": follows * first, "c": random.normal(0, 0.1, count)}
    rows = [("everything", f"p{number}", output) for number in range(count) for output in means for _ in range(2)]
    residuals = np.array([means[output][int(part[1:])] for _, part, output in rows]) + random.normal(0, 0.01, len(rows))
    frame = pd.DataFrame([row[:2] for row in rows], columns=["everything", "part"])
    outputs = np.array([row[2] for row in rows])
    correlation = ErrorCorrelation().fit(
        residuals, frame, outputs, backtests=np.zeros(len(rows)), expected_errors=np.full(len(rows), 0.1)
    )
    return correlation, follows, draw(st.floats(-0.4, 0.4)), draw(st.integers(1, 4))


@settings(max_examples=200, deadline=None)
@given(paired_errors())
def test_a_measured_score_moves_its_output_towards_it_and_another_only_as_backtests_do(drawn_errors):
    correlation, follows, residual, count = drawn_errors
    labels = pd.DataFrame([("everything", "new")] * count, columns=["everything", "part"])
    known = ErrorRows(labels, np.array(["a"] * count), np.full(count, 0.1))
    rows = ErrorRows(labels.iloc[[0] * 3], np.array(["a", "b", "c"]), np.full(3, 0.1))
    (same, paired, alone), left = correlation.predict(known, np.full(count, residual), rows)
    assert same * residual >= 0
    assert abs(same) <= abs(residual) + 1e-12
    assert paired * residual >= 0
    assert abs(paired) <= (abs(same) if follows > 0 else 0.3 * abs(same)) + 1e-12
    assert abs(alone) <= 0.6 * abs(same)
    assert (left <= 1).all()
    again = ErrorCorrelation.from_state(json.loads(json.dumps(correlation.to_state())))
    np.testing.assert_allclose(again.predict(known, np.full(count, residual), rows)[0], [same, paired, alone])


def test_a_mistyped_score_moves_no_more_than_a_large_residual():
    known, other = errors([("everything", "f", "p")], ["a"]), errors([("everything", "f", "q")], ["b"])
    large, absurd = (by_hand().predict(known, np.array([size]), other)[0][0] for size in (0.5, 7.0))
    assert large == absurd > 0


def test_well_known_predictions_hardly_shift():
    rows = [("everything", "f", "p")]
    well, badly = (
        by_hand().predict(errors(rows, ["a"], size), np.array([0.8]), errors(rows, ["a"], size))[0][0]
        for size in (0.1, 2.0)
    )
    assert well < 0.2 * badly


def test_more_measurements_narrow_more():
    predicted = errors([("everything", "f", "q")], ["b"])
    left = [
        by_hand().predict(
            errors([("everything", "f", f"p{n}") for n in range(count)], ["a"] * count), np.zeros(count), predicted
        )[1][0]
        for count in (1, 3, 9)
    ]
    assert left == sorted(left, reverse=True)


def test_shared_labels_are_the_entity_and_its_slices():
    table = project().champion.reference_data.measured
    labels = shared_labels(table)
    assert list(labels.columns) == ["everything", "cpu_vendor", "family", "cpu_model", "identity"]
    assert labels.notna().all(axis=None)
    assert labels["identity"].nunique() > labels[table.column_of(Tag.ENTITY)].nunique()


def test_uncertainty_model_saves_the_error_correlation(tmp_path):
    calibrated = project().champion.calibrated
    calibrated.save(tmp_path)
    assert UncertaintyModel.load(tmp_path).correlation.to_state() == calibrated.correlation.to_state()


def predict_corrected(measured, machine=MACHINE, options=PLAIN):
    champion = project().champion
    measurements = read_measurements(read_machines(measured), champion, machine)
    return predict_machines(parse_machines(read_machines(machine), champion), champion, options, measurements).machines[
        0
    ]


def plain(machine=MACHINE):
    champion = project().champion
    return predict_machines(parse_machines(read_machines(machine), champion), champion, PLAIN).machines[0]


def test_measured_score_shifts_and_narrows_predictions():
    before = {estimate.task: estimate for estimate in plain().estimates}
    score = 1.2 * before["CINT2017rate"].median
    after = {
        estimate.task: estimate for estimate in predict_corrected({"suite": "CINT2017rate", "score": score}).estimates
    }
    assert list(after) == SUITES
    assert before["CINT2017rate"].median < after["CINT2017rate"].median < score
    for task in SUITES:
        assert after[task].user_factor == pytest.approx(after[task].median / before[task].median)
        assert after[task].high / after[task].low <= before[task].high / before[task].low
    assert after["CINT2017rate"].user_factor == max(estimate.user_factor for estimate in after.values())


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SUITES), st.floats(0.4, 2.5))
def test_a_measured_suite_moves_no_other_away_from_its_published_results(suite, factor):
    before = {estimate.task: estimate for estimate in plain().estimates}
    measured = {"suite": suite, "score": factor * before[suite].median}
    after = {estimate.task: estimate for estimate in predict_corrected(measured).estimates}
    assert any(estimate.published for estimate in after.values())
    for task, estimate in after.items():
        if task == suite:
            assert (estimate.median - before[task].median) * (factor - 1) >= 0
        elif estimate.published:
            published = estimate.published.median
            assert (estimate.median - before[task].median) * (published - before[task].median) >= -1e-9


def test_read_measurements_accepts_target_names_and_siblings():
    sibling = {"processor": "Xeon Gold 6148", "chips": 1, "suite": "CINT2017rate", "base_score": "100"}
    assert predict_corrected(sibling).estimates != predict_corrected({**sibling, "base_score": 120}).estimates


def test_read_measurements_ignores_columns_without_use():
    plainly = {"suite": "CINT2017rate", "score": 100}
    assert (
        predict_corrected({**plainly, "tester": "me", "peak_score": 120}).estimates
        == predict_corrected(plainly).estimates
    )


def test_implausible_measurement_gets_a_note():
    assert "times its prediction" in predict_corrected({"suite": "CINT2017rate", "score": 1e5}).notes[-1]
    plausible = predict_corrected({"suite": "CINT2017rate", "score": plain().estimates[2].median})
    assert not any("times its prediction" in note for note in plausible.notes)


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        ({"suite": "CINT2017rate"}, "must have a score"),
        ({"score": 100}, "must name its task"),
        ({"suite": "CINT2017rate", "score": -1}, "score must be between"),
        ({"suite": "CINT2017rate", "score": "fast"}, "score must be a number"),
        ([{"suite": "CINT2017rate", "score": 1}] * (MAX_MEASUREMENTS + 1), "at most 500"),
        ({"suite": "CINT2017rate", "score": 100, "bytes": 3}, "'bytes'"),
    ],
)
def test_read_measurements_refuses_invalid_entries(measured, words):
    with pytest.raises(UserError) as error:
        predict_corrected(measured)
    assert words in str(error.value)


def test_predict_command_lists_corrected_outputs(tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("suite,score\nCINT2017rate,140\n")
    command = ["predict", "--results", str(project().results), "--processor", "Xeon Gold 6148", "--chips", "2"]
    assert main([*command, "--measured", str(tmp_path / "mine.csv")]) == 0
    assert "changed by your own measurements: SPECrate2017_fp_base" in capsys.readouterr().out


@pytest.mark.reliability("an absurd measured score is used without a word")
@pytest.mark.parametrize(
    "form", [[], ["--brief"], ["--csv"], ["--out", "answer.csv"]], ids=lambda form: "".join(form[:1])
)
def test_absurd_measured_score_is_named_whatever_the_form_of_the_answer(tmp_path, capsys, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("suite,score\nCINT2017rate,100000\n")
    command = ["predict", "--champion", str(project().folder), "--processor", "Xeon Gold 6148", "--chips", "2"]
    assert main([*command, "--measured", "mine.csv", *form]) == 0
    assert "other compiler options, or a typo?" in capsys.readouterr().err


@pytest.mark.reliability("an absurd measured score is used without a word")
@pytest.mark.parametrize("command", ["compare", "rank"])
def test_absurd_measured_score_is_named_by_decisions(tmp_path, capsys, command):
    (tmp_path / "mine.csv").write_text("processor,chips,suite,score\nXeon Gold 6148,2,CINT2017rate,100000\n")
    (tmp_path / "two.csv").write_text("processor,chips\nXeon Gold 6148,1\nXeon Gold 6148,2\n")
    options = ["--champion", str(project().folder), "--measured", str(tmp_path / "mine.csv"), "--csv"]
    assert main([command, str(tmp_path / "two.csv"), *options]) == 0
    assert "other compiler options, or a typo?" in capsys.readouterr().err


def test_rank_and_what_if_correct_by_measurements(tmp_path, capsys):
    score = 1.2 * plain().estimates[2].median
    (tmp_path / "mine.csv").write_text(f"processor,chips,suite,score\nXeon Gold 6148,2,CINT2017rate,{score}\n")
    (tmp_path / "candidates.csv").write_text("name,processor,chips\nmine,Xeon Gold 6148,2\n")
    this_month = replace(PLAIN, when=pd.Timestamp.now().normalize())
    expected = predict_corrected({**MACHINE, "suite": "CINT2017rate", "score": score}, options=this_month).estimates[2]
    common = ["--champion", str(project().folder), "--measured", str(tmp_path / "mine.csv"), "--json"]
    commands = {
        "rank": [str(tmp_path / "candidates.csv"), "--target", "CINT2017rate >= 1"],
        "what-if": ["--processor", "Xeon Gold 6148", "--chips", "2", "--vary", "chips=2", "--task", "CINT2017rate"],
    }
    answers = {}
    for name, options in commands.items():
        assert main([name, *options, *common]) == 0
        answers[name] = json.loads(capsys.readouterr().out)
    (combination,) = answers["what-if"]["combinations"]
    # what is not varied is held as it was completed for the task, so this is not quite the machine of the others
    assert combination["estimates"][0]["user_factor"] == pytest.approx(expected.user_factor, rel=0.02)
    assert answers["rank"]["candidates"][0]["score"] == pytest.approx(expected.median)


def test_a_measured_score_may_name_its_task_by_that_word():
    by_suite, by_task = (predict_corrected({name: "CINT2017rate", "score": 100}) for name in ("suite", "task"))
    assert by_suite == by_task
