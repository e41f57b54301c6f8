"""Corrections of predictions by a few scores that the user measured."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from champion_project import SUITES, project
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.cli.main import main
from perfcast.inference import PredictOptions, parse_machines, predict_machines, read_machines
from perfcast.inference.user_measurements import read_measurements
from perfcast.schema.table import Tag
from perfcast.uncertainty.correlation import ErrorCorrelation, ErrorRows, shared_labels
from perfcast.utils.errors import UserError

MACHINE = {"processor": "Xeon Gold 6148", "chips": 2}
PLAIN = PredictOptions(neighbors=0, explain=False)


def errors(labels, outputs):
    frame = pd.DataFrame(labels, columns=["everything", "family", "part"])
    return ErrorRows(frame, np.array(outputs), np.ones(len(frame)))


def drawn_correlation(seed):
    """Fit to errors of 6 backtests x 8 families x 5 CPU models x 2 outputs: shares of backtest, family and output."""
    random = np.random.default_rng(seed)
    rows = list(product(range(6), range(8), range(5), range(2)))
    times, families, _, outputs = np.array(rows).T
    residuals = random.normal(0, 0.05, 6)[times] + random.normal(0, 0.04, (6, 8))[times, families]
    residuals += random.normal(0, 0.03, (6, 2))[times, outputs] + random.normal(0, 0.02, len(rows))
    labels = pd.DataFrame(
        [("everything", f"{time}-{family}", f"{time}-{family}-{part}") for time, family, part, _ in rows],
        columns=["everything", "family", "part"],
    )
    known = {"backtests": times, "expected_errors": np.full(len(rows), 0.07)}
    return ErrorCorrelation().fit(residuals, labels, np.array(["a", "b"])[outputs], **known)


def test_error_correlation_recovers_known_components():
    correlations = [drawn_correlation(seed) for seed in range(8)]
    assert np.mean([each.shared["family"] for each in correlations]) == pytest.approx(0.04**2, rel=0.35)
    assert np.mean([each.noise for each in correlations]) == pytest.approx(0.02**2, rel=0.5)
    assert all(min(*each.shared.values(), *each.per_output.values()) >= 0 for each in correlations)


def test_nearer_predictions_shift_more_and_narrow_more():
    correlation = ErrorCorrelation()
    correlation.shared = {"everything": 1.0, "family": 2.0, "part": 4.0}
    correlation.per_output = {"everything": 0.0, "family": 0.5, "part": 0.0}
    correlation.noise, correlation.reference = 0.5, 1.0
    known, near = errors([("everything", "f", "p")], ["a"]), errors([("everything", "f", "q")], ["b"])
    labels = [("everything", "f", "p"), ("everything", "f", "p"), ("everything", "f", "q"), ("everything", "g", "r")]
    shift, left = correlation.predict(known, np.array([0.4]), errors(labels, ["a", "b", "b", "b"]))
    assert shift == pytest.approx(0.4 * np.array([7.5, 7.0, 3.0, 1.0]) / 8.0)
    assert left == pytest.approx(np.sqrt(1 - np.array([7.5, 7.0, 3.0, 1.0]) ** 2 / 64))
    large, absurd = (correlation.predict(known, np.array([size]), near)[0][0] for size in (0.5, 7.0))
    assert large == absurd > 0, "a mistyped score moves no more than a large residual"
    more = errors([("everything", "f", f"p{number}") for number in range(9)], ["a"] * 9)
    assert correlation.predict(more, np.zeros(9), near)[1] < correlation.predict(known, np.zeros(1), near)[1]


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


@settings(max_examples=60, deadline=None)
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


def test_shared_labels_are_the_entity_and_its_slices():
    table = project().champion.reference_data.measured
    labels = shared_labels(table)
    assert list(labels.columns) == ["everything", "cpu_vendor", "family", "cpu_model", "identity"]
    assert labels.notna().all(axis=None)
    assert labels["identity"].nunique() > labels[table.column_of(Tag.ENTITY)].nunique()


def predict_corrected(measured, machine=MACHINE, options=PLAIN):
    champion = project().champion
    measurements = read_measurements(read_machines(measured), champion, machine)
    return predict_machines(parse_machines(read_machines(machine), champion), champion, options, measurements).machines[
        0
    ]


@cache
def before():
    champion = project().champion
    machine = predict_machines(parse_machines(read_machines(MACHINE), champion), champion, PLAIN).machines[0]
    return {estimate.task: estimate for estimate in machine.estimates}


def after(measured):
    return {estimate.task: estimate for estimate in predict_corrected(measured).estimates}


def test_measured_score_shifts_and_narrows_predictions():
    score = 1.2 * before()["CINT2017rate"].median
    corrected = after({"suite": "CINT2017rate", "score": score})
    assert list(corrected) == SUITES
    assert before()["CINT2017rate"].median < corrected["CINT2017rate"].median < score
    for task in SUITES:
        assert corrected[task].user_factor == pytest.approx(corrected[task].median / before()[task].median)
        assert corrected[task].high / corrected[task].low <= before()[task].high / before()[task].low
    assert corrected["CINT2017rate"].user_factor == max(estimate.user_factor for estimate in corrected.values())
    other_names = {"task": "CINT2017rate", "base_score": str(score), "tester": "me", "peak_score": 120}
    assert after(other_names) == corrected
    sibling = {"processor": "Xeon Gold 6148", "chips": 1, "suite": "CINT2017rate", "score": 100}
    assert after(sibling) != after({**sibling, "score": 120})


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(SUITES), st.floats(0.4, 2.5))
def test_a_measured_suite_moves_no_other_away_from_its_published_results(suite, factor):
    corrected = after({"suite": suite, "score": factor * before()[suite].median})
    assert any(estimate.published for estimate in corrected.values())
    for task, estimate in corrected.items():
        moved = estimate.median - before()[task].median
        if task == suite:
            assert moved * (factor - 1) >= 0
        elif estimate.published:
            assert moved * (estimate.published.median - before()[task].median) >= -1e-9


def test_implausible_measurement_gets_a_note():
    plausible = predict_corrected({"suite": "CINT2017rate", "score": before()["CINT2017rate"].median})
    assert not any("times its prediction" in note for note in plausible.notes)


def test_measurements_without_a_task_or_of_another_dataset_are_refused():
    """Others are in `tests/hostile/test_machine_files.py`."""
    for measured, words in (
        ({"score": 100}, "must name its task"),
        ({"suite": SUITES[0], "score": 1, "bytes": 3}, "'b"),
    ):
        with pytest.raises(UserError, match=words):
            predict_corrected(measured)


COMMANDS = {
    "predict": ["--processor", "Xeon Gold 6148", "--chips", "2"],
    "predict --csv": ["--processor", "Xeon Gold 6148", "--chips", "2", "--csv"],
    "compare": ["two.csv", "--csv"],
    "rank": ["two.csv", "--csv"],
}


@pytest.mark.reliability("an absurd measured score is used without a word", cases=len(COMMANDS))
def test_absurd_measured_score_is_named_by_every_command_whatever_the_form_of_the_answer(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("processor,chips,suite,score\nXeon Gold 6148,2,CINT2017rate,100000\n")
    (tmp_path / "two.csv").write_text("processor,chips\nXeon Gold 6148,1\nXeon Gold 6148,2\n")
    common = ["--champion", str(project().folder), "--measured", "mine.csv"]
    for command, options in COMMANDS.items():
        assert main([command.split()[0], *options, *common]) == 0
        shown = capsys.readouterr()
        assert "other compiler options, or a typo?" in shown.err, command
        assert command != "predict" or "changed by your own measurements: SPECrate2017_fp_base" in shown.out


def test_rank_and_what_if_correct_by_measurements(tmp_path, capsys):
    measured = {**MACHINE, "suite": "CINT2017rate", "score": 1.2 * before()["CINT2017rate"].median}
    pd.DataFrame([measured]).to_csv(tmp_path / "mine.csv", index=False)
    this_month = replace(PLAIN, when=pd.Timestamp.now().normalize())
    expected = predict_corrected(measured, options=this_month).estimates[2]
    pd.DataFrame([MACHINE]).to_csv(tmp_path / "candidates.csv", index=False)
    commands = {
        "rank": [str(tmp_path / "candidates.csv"), "--target", "CINT2017rate >= 1"],
        "what-if": ["--processor", "Xeon Gold 6148", "--chips", "2", "--vary", "chips=2", "--task", "CINT2017rate"],
    }
    answers = {}
    for name, options in commands.items():
        common = ["--champion", str(project().folder), "--measured", str(tmp_path / "mine.csv"), "--json"]
        assert main([name, *options, *common]) == 0
        answers[name] = json.loads(capsys.readouterr().out)
    (combination,) = answers["what-if"]["combinations"]
    # what is not varied is held as it was completed for the task, so this is not quite the machine of the others
    assert combination["estimates"][0]["user_factor"] == pytest.approx(expected.user_factor, rel=0.02)
    assert answers["rank"]["candidates"][0]["score"] == pytest.approx(expected.median)
