"""Published results of exactly the described machine, beside its prediction."""

from __future__ import annotations

import numpy as np
import pytest
from champion_project import KNOWN, PLAIN, predict, project

from perfcast.inference import PredictOptions
from perfcast.inference.prediction import format_predictions


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


def test_table_has_the_number_and_median_of_published_results():
    machine, rows = _measured_machine()
    frame = predict([machine, {**machine, "base_mhz": 1234}], options=PLAIN).to_frame()
    assert frame["published"].tolist() == [rows["base_score"].notna().sum(), 0]
    assert frame["published_median"].iloc[0] == rows["base_score"].median()
    assert np.isnan(frame["published_median"].iloc[1])
