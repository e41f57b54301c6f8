"""Published results of exactly the described machine, beside its prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from champion_project import KNOWN, PLAIN, predict, project
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.decisions.display import format_predictions
from perfcast.inference import PredictOptions
from perfcast.utils.terminal_tables import format_number


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
    published = _published(machine)
    scores = rows["base_score"].dropna()
    assert published.count == len(scores) > 1
    assert (published.low, published.median, published.high) == (scores.min(), scores.median(), scores.max())
    assert sum(group.count for group in published.groups) == published.count
    assert {each.result for each in published.results} <= set(rows["result_id"])
    months = [each.published for each in published.results]
    assert months == sorted(months, reverse=True)


def test_published_groups_are_by_compiler_and_year():
    machine, rows = _measured_machine()
    newest = _published(machine).groups[0]
    alike = rows[
        (rows["published_month"].dt.year == newest.year)
        & ((rows["compiler_vendor"] + " " + rows["compiler_major_minor"]) == newest.setup)
    ]
    assert newest.year == rows["published_month"].dt.year.max()
    assert newest.count == len(alike)
    assert newest.median == alike["base_score"].median()


def test_published_results_match_everything_given():
    machine, rows = _measured_machine()
    given = float(rows["dimm_count"].dropna().value_counts().index[-1])
    published = _published({**machine, "dimm_count": given})
    assert published.count == (rows["dimm_count"].isin([given]) | rows["dimm_count"].isna()).sum()
    assert _published({**machine, "base_mhz": float(rows["base_mhz"].iloc[0]) + 7}) is None


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


def test_text_begins_with_published_results():
    machine, _ = _measured_machine()
    predictions = predict(machine, options=PredictOptions(neighbors=0))
    published = predictions.machines[0].estimates[0].published
    text = format_predictions(predictions)
    assert text.index("published results of this machine") < text.index("prediction\n")
    assert published.results[0].result in text


def _shifted(factor):
    """Return the project's champion with the published scores of the measured machine changed, and that machine."""
    machine, rows = _measured_machine()
    champion = project().champion
    measured = champion.reference_data.measured
    frame = measured.frame.assign(base_score=measured.frame["base_score"].where(~measured.frame.index.isin(rows.index)))
    frame["base_score"] = frame["base_score"].fillna(measured.frame["base_score"] * factor)
    reference_data = replace(champion.reference_data, measured=replace(measured, frame=frame))
    return replace(champion, reference_data=reference_data), machine


@settings(max_examples=60, deadline=None)
@given(st.floats(0.25, 4.0), st.booleans())
def test_published_results_outside_the_interval_are_named_first(factor, brief):
    champion, machine = _shifted(factor)
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
    assert estimate.published is None
    assert "with other software" in estimate.published_outside
    (other,) = predict({**machine, "base_mhz": 1234}, champion, PLAIN).machines[0].estimates
    assert other.published_outside == ""
    assert predictions.machines[0].notes[0].endswith("compare the software")


def test_table_has_the_number_and_median_of_published_results():
    machine, rows = _measured_machine()
    frame = predict([machine, {**machine, "base_mhz": 1234}], options=PLAIN).to_frame()
    assert frame["published"].tolist() == [rows["base_score"].notna().sum(), 0]
    assert frame["published_median"].iloc[0] == rows["base_score"].median()
    assert np.isnan(frame["published_median"].iloc[1])
