"""Sections of the report: largest errors, calibration and model cards."""

import dataclasses

import pandas as pd
import pytest

from perfcast.report.error_tables import calibration_tables, described_section
from perfcast.report.render_page import cards, model_card
from perfcast.report.report_context import name_machines
from perfcast.report.text_tables import largest_errors
from perfcast.splits import split_label


def planted(part, **changes):
    """The evaluation with one point of `random` changed so that it is the worst of all."""
    points = part.evaluation.tables["points"].copy()
    mine = points.index[(points["split"] == "random") & (points["predictor"] == "network")]
    for name, value in changes.items():
        points.loc[mine[0], name] = value
    return part.evaluation.with_tables(points=points), str(points.loc[mine[0], "row"])


def worst_line(evaluation, names):
    """The first line of the table of `random`."""
    place = evaluation.ranked_splits.index("random")
    return largest_errors(evaluation, names, "network")[place].lines[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"in_domain_score": 0.001, "least_similar_group": "memory"}, "99 % of this split, above all by its memory"),
        ({"in_domain_score": 1.0}, "no reason found in the data"),
        ({"in_domain_score": 1.0, "half_width": 100.0}, "inside its interval"),
    ],
)
def test_largest_error_names_the_least_similar_group_the_interval_or_no_cause(part, changes, reason):
    _, _, _, predicted, *_, text = worst_line(planted(part, predicted=1e6, **changes)[0], name_machines(part.table))
    assert reason in text
    assert (predicted.notes[-1] == "outside") == ("half_width" not in changes)


def test_interval_calibration_flags_large_groups_only(part):
    metrics = part.evaluation.metrics.copy()
    metrics.loc[metrics["metric"] == "coverage", "value"] = 90.0
    here = (metrics["split"] == "random") & (metrics["predictor"] == "network") & (metrics["metric"] == "coverage")
    metrics.loc[here & (metrics["task"] == "float"), "value"] = 87.9
    metrics.loc[here & (metrics["task"] == "integer"), "value"] = 92.1
    (table,) = calibration_tables(part.evaluation.with_tables(metrics=metrics), "network")
    flags = {label: [cell.mark for cell in cells] for label, *cells in table.lines}
    place = part.evaluation.splits.index("random")
    marked = {name: (marks[place], sum(map(bool, marks))) for name, marks in flags.items()}
    assert marked == {"float": ("low", 1), "integer": ("high", 1), "average over tasks": ("", 0)}
    few = metrics.assign(rows=metrics["rows"].where(metrics["task"] != "float", 19))
    (table,) = calibration_tables(part.evaluation.with_tables(metrics=few), "network")
    assert not any(cell.mark for label, *cells in table.lines if label == "float" for cell in cells)
    bare = part.evaluation.metrics[~part.evaluation.metrics["metric"].isin(["coverage", "width"])]
    assert calibration_tables(part.evaluation.with_tables(metrics=bare), "network") == []


def test_described_machines_are_listed_by_level(part):
    line = {"split": "random", "facts": "all", "level": 2, "n": 1000, "mape": 6.0, "medape": 3.5}
    metrics = {**line, "coverage": 90.0, "width": 20.0, "interval_score": 30.0}
    frame = pd.DataFrame([{**metrics, "task": "average"}, {**metrics, "task": "other"}])
    (table,) = described_section(part.evaluation.with_tables(described=frame)).data
    values = ["all", "2 and chips", "1,000", "6.00", "3.50", "90.0", "20.0"]
    assert table.lines == [[split_label("random"), *values]]
    assert described_section(part.evaluation).data == []


def test_model_card_is_equal_in_both_formats(context, part):
    about = {"predictor": "network", "rows": 500, "preset": "quick", "seed": 0, "table_sha256": "0" * 64}
    known = dataclasses.replace(part, champion={**about, "chosen_by": "inner validation", "features": ["memory"]})
    sections = model_card(known, context)
    text = cards(dataclasses.replace(context, datasets=(known,)))["fake"]
    for section in sections:
        assert f"## {section.title}" in text
        assert all(f"- {line}" in text for line in section.lines)
    value = part.evaluation.value("random", "network")["value"]
    for words in (
        "SPEC Fair Use",
        "| random | machines similar to those in the training data | ",
        f"| {value:.2f} |",
        "estimate, not a measured result",
    ):
        assert words in text
    assert "none stated" not in text, "the terms of a source that this dataset does not use"
    without = dataclasses.replace(part, champion=None)
    assert model_card(without, context) == []
    assert "No champion of fake was" in cards(dataclasses.replace(context, datasets=(without,)))["fake"]


def test_learning_curve_split_has_the_label_of_its_base():
    assert split_label("random_05_percent") == "similar machines, 5 % of the training rows"
    assert split_label("forward_2023_last_2_years") == "releases from 2023, last 2 years"
