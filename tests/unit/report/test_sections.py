"""Sections of the report: explorer, largest errors, releases, calibration, ablation and model cards."""

import base64
import dataclasses
import json
import zlib

import numpy as np
import pandas as pd
import pytest

from perfcast.report.explorer import NO_INTERVAL, SCALE, explorer_predictors, explorer_view, point_budgets
from perfcast.report.largest_errors import largest_errors
from perfcast.report.model_card import cards, model_card
from perfcast.report.release_errors import axis_limit, axis_position, release_errors
from perfcast.report.report_context import NAME, Rows, collect, hardest_split_first
from perfcast.report.summaries import ablation_tables, calibration_remarks, calibration_tables
from perfcast.report.text_tables import described_section
from perfcast.schema.table import Tag
from perfcast.splits import describe_split, split_label
from perfcast.testing.generated_results import FAKE_PARAMS, fake_table, write_results


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, rows=500, seed=0)
    return collect(folder, FAKE_PARAMS, sources={"fake": ["fake"]})


@pytest.fixture(scope="module")
def part(context):
    return context.datasets[0]


def explorer_data(part, **options):
    view = explorer_view(part.evaluation, part.rows, "network", **options)
    data = json.loads(zlib.decompress(base64.b64decode(view["packed"])))
    return {**data, "runs": {(run.split, run.predictor): decoded(run) for run in view["runs"]}}


def decoded(run):
    raw = zlib.decompress(base64.b64decode(run.text))
    errors, half = raw[: len(raw) // 2], raw[len(raw) // 2 :]
    return np.frombuffer(errors, "<i2") / SCALE, np.frombuffer(half, "<u2")


def unfronted(coded):
    texts, before = [], ""
    for shared, suffix in zip(coded["shared"], coded["rest"].split("\n"), strict=True):
        before = before[:shared] + suffix
        texts.append(before)
    return texts


def test_explorer_columns_equal_the_points(part):
    data, points = explorer_data(part), part.evaluation.tables["points"]
    rows = unfronted(data["row"])
    names = unfronted(data["name"]["values"])
    codes = np.cumsum(data["name"]["codes"])
    assert [names[code] for code in codes] == part.rows.names.loc[rows, NAME].tolist()
    year = next(entry for entry in data["filters"] if entry["label"] == "year")
    frame = part.rows.table.frame.set_index("id")
    assert [int(year["values"][code]) for code in year["codes"]] == frame.loc[rows, "published"].dt.year.tolist()
    month = data["month"]
    assert [(month["first"] + since) // 12 for since in month["since"]] == frame.loc[rows, "published"].dt.year.tolist()
    assert set(data["predictors"]) == set(part.evaluation.predictors)
    assert len(data["runs"]) == len(data["splits"]) * len(data["predictors"])
    for number, split in enumerate(data["splits"]):
        items = np.cumsum(split["items"])
        for place, predictor in enumerate(data["predictors"]):
            errors, half = data["runs"][number, place]
            mine = points[(points["split"] == split["name"]) & (points["predictor"] == predictor)].set_index("row")
            mine = mine.loc[[rows[item] for item in items]]
            assert len(mine) == len(items)
            measured = np.array(data["measured"])[items]
            np.testing.assert_allclose(measured * np.exp(errors), mine["predicted"], rtol=2e-4)
            np.testing.assert_allclose(half / SCALE, mine["half_width"], atol=1.01e-4)


def test_explorer_marks_predictors_without_interval_and_extreme_errors(part):
    points = part.evaluation.tables["points"]
    first = points.index[(points["predictor"] == "network") & (points["split"] == "random")][0]
    points = points.assign(half_width=np.nan)
    points.loc[first, "predicted"] = 1e9 * points.loc[first, "measured"]
    other = dataclasses.replace(part, evaluation=part.evaluation.with_tables(points=points))
    runs = explorer_data(other)["runs"].values()
    assert all((half == NO_INTERVAL).all() for _, half in runs)
    assert max(errors.max() for errors, _ in runs) == 32_767 / SCALE


def test_explorer_sorts_values_by_number(part):
    frame = part.rows.table.frame
    chips = frame.assign(generation=frame["chips"].map({1.0: "16", 2.0: "2", 4.0: None}))
    rows = Rows(dataclasses.replace(part.rows.table, frame=chips), part.rows.folds)
    view = explorer_view(part.evaluation, rows, "network")
    (entry,) = (entry for entry in view["filters"] if entry["label"] == "generation")
    assert entry["values"] == ["2", "16", "not stated"]
    assert view["filters"][view["color"]]["label"] == "generation"


def test_explorer_has_all_predictors_with_their_role(part):
    roles = explorer_predictors(part.evaluation, "ridge")
    assert next(iter(roles)) == "ridge"
    assert set(roles) == set(part.evaluation.predictors)
    assert {name: role for name, role in roles.items() if role} == {
        "ridge": "chosen",
        "network": "smallest error on every split",
        "nearest": "baseline",
    }


def test_explorer_thins_points_by_row(part):
    whole, thin = explorer_data(part), explorer_data(part, maximum=500)
    assert whole["every"] == 1
    assert thin["every"] > 1
    assert set(unfronted(thin["row"])) < set(unfronted(whole["row"]))
    drawn = sum(len(errors) for errors, _ in thin["runs"].values())
    assert 0 < drawn <= 600
    assert all(
        len(errors) == len(half) == len(thin["splits"][split]["items"])
        for (split, _), (errors, half) in thin["runs"].items()
    )


def test_explorer_divides_the_points_between_datasets():
    assert point_budgets([10, 1000, 400], maximum=1000) == [10, 590, 400]
    assert point_budgets([5, 5], maximum=100) == [5, 5]


def test_explorer_escapes_closing_script_tags(part):
    frame = part.rows.table.frame.assign(machine_vendor="</script><b>")
    rows = Rows(dataclasses.replace(part.rows.table, frame=frame), part.rows.folds)
    frame.loc[0, "machine_vendor"] = "other"
    view = explorer_view(part.evaluation, rows, "network")
    assert "<" not in view["packed"] + "".join(run.text for run in view["runs"])
    data = json.loads(zlib.decompress(base64.b64decode(view["packed"])))
    assert "</script><b>" in data["filters"][1]["values"]


def planted(part, **changes):
    """The evaluation with one point of `random` changed so that it is the worst of all."""
    points = part.evaluation.tables["points"].copy()
    mine = points.index[(points["split"] == "random") & (points["predictor"] == "network")]
    for name, value in changes.items():
        points.loc[mine[0], name] = value
    return part.evaluation.with_tables(points=points), str(points.loc[mine[0], "row"])


def test_largest_error_is_blamed_on_the_measurement_by_siblings(part):
    # columns with the tag IDENTITY define siblings
    table = part.rows.table
    columns = tuple(
        dataclasses.replace(column, tags=(*column.tags, Tag.IDENTITY)) if column.name in {"part", "chips"} else column
        for column in table.columns
    )
    frame = table.frame.copy()
    # many alike, so that every machine has siblings
    frame["part"] = "part 1"
    frame["chips"] = 2.0
    frame["score"] = 100.0
    evaluation, row = planted(part, measured=25.0, predicted=100.0)
    frame.loc[frame["id"] == row, "score"] = 25.0
    rows = Rows(dataclasses.replace(table, frame=frame, columns=columns), part.rows.folds)
    worst = largest_errors(evaluation, rows, "network")["random"][0]
    assert worst.row == row
    assert worst.error == pytest.approx(300)
    assert "the measured score is 75 % below the median of" in worst.reason
    assert "results of the same part and chips" in worst.reason
    # an estimate that is too low is not explained by a score below its siblings'
    evaluation, _ = planted(part, measured=25.0, predicted=5.0)
    assert "median" not in largest_errors(evaluation, rows, "network")["random"][0].reason


def test_largest_error_names_values_absent_from_training(part):
    evaluation, row = planted(part, predicted=1e6)
    frame = part.rows.table.frame.copy()
    frame.loc[frame["id"] == row, "generation"] = "generation new"
    rows = Rows(dataclasses.replace(part.rows.table, frame=frame), part.rows.folds)
    assert (
        "the training data has no result of generation generation new"
        in largest_errors(evaluation, rows, "network")["random"][0].reason
    )


def test_largest_error_names_the_least_similar_group(part):
    evaluation, _ = planted(part, predicted=1e6, in_domain_score=0.001, least_similar_group="memory")
    reason = largest_errors(evaluation, part.rows, "network")["random"][0].reason
    assert "less similar to the training data than 99 % of this split, above all by its memory" in reason


def test_largest_error_without_a_cause(part):
    evaluation, _ = planted(part, predicted=1e6, in_domain_score=1.0)
    worst = largest_errors(evaluation, part.rows, "network")["random"][0]
    assert worst.reason == "no reason found in the data"
    assert not worst.inside
    evaluation, _ = planted(part, predicted=1e6, in_domain_score=1.0, half_width=100.0)
    assert "inside its interval" in largest_errors(evaluation, part.rows, "network")["random"][0].reason


def test_release_errors_are_signed_and_of_forward_splits(part):
    assert release_errors(part.evaluation, part.rows, "network") == {}
    frame = part.rows.table.frame
    points = part.evaluation.tables["points"]
    tested = set(points.loc[points["split"] == "forward_2023", "row"])
    late = frame["id"].isin(tested)
    turned = frame.assign(
        published=np.where(late, pd.Timestamp("2023-06-01"), pd.Timestamp("2021-06-01")),
        generation=np.where(late & (frame["chips"] == 4), "newest", "old"),
    )
    rows = Rows(dataclasses.replace(part.rows.table, frame=turned), part.rows.folds)
    chips = frame.set_index("id")["chips"].reindex(points["row"]).to_numpy()
    # biases of opposite sign: an average over the tasks would hide them
    factor = np.where(chips == 4, np.where(points["task"] == "float", 0.9, 1.1), 1.2)
    points = points.assign(predicted=points["measured"] * factor)
    releases = release_errors(part.evaluation.with_tables(points=points), rows, "network")
    assert list(releases) == ["forward_2023"]
    newest, old = releases["forward_2023"]
    assert (newest.family, newest.seen, newest.first) == ("newest", 0, "2023-06")
    assert {task: round(error.mean_error, 3) for task, error in newest.tasks.items()} == {"float": -10, "integer": 10}
    assert newest.worst == pytest.approx(10, abs=1e-3)
    assert sum(error.rows for error in newest.errors) == newest.rows
    assert old.seen == len(frame) - len(tested)
    assert {round(error.mape, 3) for error in old.errors} == {20}
    assert axis_limit([newest, old]) == 20
    assert axis_position(-10, 20) == -50
    assert axis_position(999, 20) == 100
    few = points[(points["task"] != "float") | (chips != 4)]
    newest, _ = release_errors(part.evaluation.with_tables(points=few), rows, "network")["forward_2023"]
    assert newest.tasks["float"] is None
    assert newest.tasks["integer"] is not None


def test_interval_calibration_flags_large_groups_only(part):
    metrics, slices = part.evaluation.metrics.copy(), part.evaluation.tables["slices"].copy()
    metrics.loc[metrics["metric"] == "coverage", "value"] = 90.0
    here = (metrics["split"] == "random") & (metrics["predictor"] == "network") & (metrics["metric"] == "coverage")
    metrics.loc[here & (metrics["task"] == "float"), "value"] = 87.9
    metrics.loc[here & (metrics["task"] == "integer"), "value"] = 92.1
    slices["coverage"] = 50.0
    slices.loc[slices["value"] == "Alder", "rows"] = 19
    tables = calibration_tables(part.evaluation.with_tables(metrics=metrics, slices=slices), "network")
    assert [table.column for table in tables] == ["task", "machine_vendor", "year"]
    flags = {label: [cell.flag for cell in cells] for label, cells in tables[0].lines}
    place = part.evaluation.splits.index("random")
    assert {name: (marks[place], sum(map(bool, marks))) for name, marks in flags.items()} == {
        "float": ("low", 1),
        "integer": ("high", 1),
        "average over tasks": ("", 0),
    }
    assert {label for label, _ in tables[1].lines} == {"Birch", "Cedar & Sons"}
    assert {cell.flag for _, cells in tables[1].lines for cell in cells} == {"low"}
    bare = part.evaluation.metrics[~part.evaluation.metrics["metric"].isin(["coverage", "width"])]
    none = part.evaluation.with_tables(metrics=bare, slices=slices.assign(coverage=np.nan))
    assert calibration_tables(none, "network") == []


def test_calibration_remarks_name_the_worst_slab_and_the_alarm(part):
    calibration = part.evaluation.tables["calibration"]
    assert set(calibration["predictor"]) == set(part.evaluation.predictors)
    first, *others = calibration_remarks(part.evaluation, "network")
    assert len(others) == len(part.evaluation.splits) - 1
    assert "the worst fifth of the machines has" in first
    assert "martingale" not in first
    planted = calibration.assign(log10_martingale=5.25, alarm="2023-04")
    remarks = calibration_remarks(part.evaluation.with_tables(calibration=planted), "network")
    assert all("from 2023-04 on, errors are unlike those of backtests (martingale 10^5.2)" in line for line in remarks)
    assert calibration_remarks(part.evaluation.with_tables(calibration=pd.DataFrame()), "network") == []


def test_described_machines_are_listed_by_level(part):
    line = {"split": "random", "facts": "all", "level": 2, "n": 1000, "mape": 6.0, "medape": 3.5}
    metrics = {**line, "coverage": 90.0, "width": 20.0, "interval_score": 30.0}
    frame = pd.DataFrame([{**metrics, "task": "average"}, {**metrics, "task": "other"}])
    (table,) = described_section(part.evaluation.with_tables(described=frame)).data
    assert table.lines == [(split_label("random"), "all", "2 and chips", "1,000", "6.00", "3.50", "90.0", "20.0")]
    assert described_section(part.evaluation).data == []


def test_ablation_table_compares_on_the_same_rows(part):
    assert ablation_tables(part.evaluation, part.rows) == []
    evaluation = part.evaluation
    points = evaluation.tables["points"][evaluation.tables["points"]["predictor"] == "network"]
    points = points.assign(predicted=points["measured"] * 1.02)
    worse = points.assign(predictor="network_without_idea", predicted=points["measured"] * 1.05)
    metrics = evaluation.metrics[evaluation.metrics["predictor"] == "network"]
    both = evaluation.with_tables(
        points=pd.concat([points, worse]),
        metrics=pd.concat([metrics, metrics.assign(predictor="network_without_idea")]),
    )
    (table,) = ablation_tables(both, part.rows)
    assert (table.predictor, table.splits) == ("network", evaluation.splits)
    ((idea, losses),) = table.lines
    assert idea == "idea"
    assert [loss.difference for loss in losses] == pytest.approx([3.0] * 3, abs=1e-3)
    assert all(loss.clear and loss.low <= loss.difference + 1e-3 for loss in losses)


def test_hardest_split_is_first(part):
    metrics = part.evaluation.metrics
    errors = {"random": {"ridge": 9.0}, "unseen_cpu": {"ridge": 1.0}, "forward_2023": {"ridge": 5.0}}
    changed = (metrics["predictor"] == "ridge") & (metrics["metric"] == "mape")
    by_split = metrics["split"].map({split: error["ridge"] for split, error in errors.items()})
    evaluation = part.evaluation.with_tables(metrics=metrics.assign(value=by_split.where(changed, metrics["value"])))
    assert hardest_split_first(evaluation, "ridge").splits == ["random", "forward_2023", "unseen_cpu"]
    best = evaluation.ranking()[0]
    ordered = hardest_split_first(evaluation)
    values = [ordered.value(split, best)["value"] for split in ordered.splits]
    assert values == sorted(values, reverse=True)
    assert ordered.value("random", "ridge")["value"] == 9.0


def test_count_training_rows_counts_in_the_fold_of_the_row():
    table = fake_table(rows=6, seed=0)
    frame = table.frame.assign(part=["a", "a", "b", "b", "c", "a"])
    folds = pd.DataFrame(
        {
            "fold_0": ["test", "train", "train", "validation", "unused", "train"],
            "fold_1": ["train", "train", "test", "train", "train", "unused"],
        }
    )
    rows = Rows(dataclasses.replace(table, frame=frame), {"two": folds})
    values = pd.Series(frame["part"].to_numpy(), index=rows.keys)
    assert rows.count_training_rows("two", values).to_dict() == {"r000000": 2, "r000002": 1}
    assert rows.count_training_rows("absent", values).empty


def test_model_card_is_equal_in_both_formats(context, part):
    about = {"predictor": "network", "rows": 500, "preset": "quick", "seed": 0, "table_sha256": "0" * 64}
    known = dataclasses.replace(part, champion={**about, "chosen_by": "inner validation", "features": ["memory"]})
    sections = model_card(known, context)
    text = cards(dataclasses.replace(context, datasets=(known,)))["fake"]
    for section in sections:
        assert f"## {section.title}" in text
        assert all(f"- {line}" in text for line in section.lines)
    assert "SPEC Fair Use" in text
    assert "none stated" not in text, "the terms of a source that this dataset does not use"
    assert "| random | machines similar to those in the training data | " in text
    assert "estimate, not a measured result" in text
    value = part.evaluation.value("random", "network")["value"]
    assert f"| {value:.2f} |" in text
    assert model_card(dataclasses.replace(part, champion=None), context) == []
    assert (
        "No champion of fake was evaluated."
        in cards(dataclasses.replace(context, datasets=(dataclasses.replace(part, champion=None),)))["fake"]
    )


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ("unseen_cpu", "machines whose CPU model has no result in the training data"),
        ("few_shot_1", "machines published from 2023 on, with the first measured result of each"),
        ("no_such", ""),
    ],
)
def test_describe_split(split, words):
    assert describe_split(split) == words


@pytest.mark.parametrize(
    ("split", "label"),
    [
        ("forward_2023", "releases from 2023"),
        ("random_05_percent", "similar machines, 5 % of the training rows"),
        ("forward_2023_last_2_years", "releases from 2023, last 2 years"),
        ("no_such", "no_such"),
    ],
)
def test_split_label(split, label):
    assert split_label(split) == label
