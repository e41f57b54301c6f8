"""Headline metrics, errors with excluded rows, of described machines and by kind of result: computed by hand."""

import warnings

import numpy as np
import pandas as pd
import pytest

from perfcast.evaluation import AVERAGE
from perfcast.evaluation.evaluation_files import headline_metrics
from perfcast.evaluation.run_predictions import COLUMNS
from perfcast.evaluation.supplementary_tables import (
    DESCRIBED_COLUMNS,
    KIND_COLUMNS,
    compare_all_rows,
    summarize_described,
    tabulate_kind_errors,
    whole_kinds,
)
from perfcast.schema.table import Column, Kind, Role, Table, Tag


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        (
            {"trees": {"mape": 2.0, "coverage": 91.0, "r2": 0.9}, "nearest": {"mape": 4.0}, "ridge": {"mape": 3.0}},
            {"champion": "trees", "mape": 2.0, "coverage": 91.0, "baseline": "ridge", "baseline_mape": 3.0},
        ),
        ({"power_law": {"mape": 5.0}}, {"champion": "trees"}),
        # a share has its error in points
        (
            {
                "trees": {"mae": 2.0, "mape": 90.0},
                **{"nearest": {"mae": 4.0, "mape": 30.0}, "ridge": {"mae": 3.0, "mape": 80.0}},
            },
            {"champion": "trees", "mae": 2.0, "mape": 90.0, "baseline": "ridge", "baseline_mae": 3.0},
        ),
    ],
)
def test_a_split_has_the_champion_and_the_best_baseline_that_were_measured(errors, expected):
    metrics = {"hosts": {"random": {name: {"average": values} for name, values in errors.items()}}}
    headline = headline_metrics(metrics, {"hosts": "trees"}, ["nearest", "ridge"])
    assert headline["hosts", "random"] == expected


def predictions(*lines):
    rows = [(row, task, "e", 0, seed, "score", measured, predicted) for row, task, seed, measured, predicted in lines]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_means_without_and_with_excluded_rows():
    counted = predictions(
        ("a", "int", 0, 100, 110), ("a", "int", 1, 100, 130), ("b", "int", 0, 100, 90), ("b", "int", 1, 100, 90),
        ("c", "fp", 0, 50, 55), ("c", "fp", 1, 50, 55),
    )  # fmt: skip
    excluded = predictions(("x", "int", 0, 10, 20), ("x", "int", 1, 10, 20))
    lines = compare_all_rows(counted, excluded).set_index("task")
    assert lines.loc["int", ["mape", "mape_all_rows"]].tolist() == pytest.approx([15, (10 + 10 + 30 + 10 + 200) / 6])
    assert lines.loc["fp", "mape"] == lines.loc["fp", "mape_all_rows"] == pytest.approx(10)
    assert lines.loc[AVERAGE, "mape"] == pytest.approx(12.5)
    assert lines.loc[["int", AVERAGE], ["rows", "excluded"]].to_numpy().tolist() == [[2, 1], [3, 1]]


def test_metrics_of_described_machines_are_averaged_over_tasks():
    common = {"split": "forward_2024", "facts": "all", "level": 1}
    lines = [("int", 100.0, 110.0, 99.0, 121.0), ("int", 100.0, 80.0, 72.0, 90.0), ("fp", 50.0, 50.0, 45.0, 55.0)]
    described = pd.DataFrame(lines, columns=["task", "measured", "predicted", "low", "high"]).assign(**common)
    whole, none, empty = (
        summarize_described(pd.DataFrame(), None, predictions=frame, level=0.9)
        for frame in (described, None, described.head(0))
    )
    table = whole.set_index("task")
    assert table.loc["int", ["n", "mape", "medape", "coverage"]].tolist() == pytest.approx([2, 15, 15, 50])
    assert table.loc["int", "width"] == pytest.approx((100 * 22 / 110 + 100 * 18 / 80) / 2)
    # the second interval ends 10 below the measured score: its width and 2 / 0.1 times the distance
    assert table.loc["int", "interval_score"] == pytest.approx((22 + 18 + 20 * 10) / 2)
    assert table.loc[AVERAGE, ["n", "mape", "coverage"]].tolist() == pytest.approx([3, 7.5, 75])
    assert none.empty and empty.empty and list(whole) == list(empty) == DESCRIBED_COLUMNS


RUN_COLUMNS = (
    Column("id", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.ROW,)),
    Column("run", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.BLOCK,)),
    Column("task_kind", Kind.CATEGORICAL, Role.KEY, "run"),
)
SHARE = Column("share", Kind.NUMERICAL, Role.TARGET, "run", "share of alone")
ROWS = pd.DataFrame(
    {
        "id": ["a1", "a2", "b1", "b2"],
        "run": ["a", "a", "b", "b"],
        "task_kind": ["accuracy", "loss", "accuracy", "loss"],
    }
)
POINTS = pd.DataFrame(
    {
        **{"split": "larger", "predictor": "law", "row": ["a1", "a2", "b1", "b2"]},
        **{"measured": [0.50, 2.0, 0.40, 4.0], "predicted": [0.52, 2.1, 0.36, 4.0]},
        "half_width": [0.01, 0.1, 0.2, 0.1],
    }
)


def kinds(points=POINTS, columns=RUN_COLUMNS, rows=ROWS):
    return tabulate_kind_errors(points, Table("runs", rows, columns), resamples=200, seed=0).set_index("kind")


def test_accuracies_are_in_points_and_losses_in_percent():
    accuracy, loss = kinds().loc["accuracy"], kinds().loc["loss"]
    assert (accuracy["unit"], loss["unit"]) == ("points", "%")
    assert (accuracy["rows"], accuracy["runs"]) == (2, 2)
    means = ["mean", "signed", "low", "high"]
    assert accuracy[means].tolist() == pytest.approx([(2 + 4) / 2, (2 - 4) / 2, 2, 4])
    assert loss["mean"] == pytest.approx((5 + 0) / 2)
    # 0.52 / 0.50 is outside of exp(0.01), 0.36 / 0.40 inside of exp(0.2)
    assert (accuracy["coverage"], loss["coverage"]) == pytest.approx((50, 100))
    assert loss["width"] == pytest.approx(100 * (np.exp(0.1) - np.exp(-0.1)))
    # measured 2 and 4 with the mean 3; errors 0.1 and 0
    assert loss["r2"] == pytest.approx(1 - 0.01 / 2)
    bare = kinds(POINTS.assign(half_width=np.nan, measured=1.0))
    assert bare[["coverage", "r2"]].isna().all(axis=None)


def test_the_interval_of_r2_holds_it():
    random, many = np.random.default_rng(0), 40
    rows = pd.DataFrame({"id": [f"r{n}" for n in range(many)], "run": [f"b{n // 2}" for n in range(many)]})
    measured = random.uniform(0.2, 1, many)
    points = pd.DataFrame({"split": "s", "predictor": "p", "row": rows["id"], "measured": measured})
    points = points.assign(predicted=measured + random.normal(0, 0.05, many), half_width=0.1)
    line = kinds(points, rows=rows.assign(task_kind="accuracy")).loc["accuracy"]
    assert line["r2_low"] < line["r2"] < line["r2_high"] < 1


def test_every_kind_of_a_share_is_in_points_with_lines_of_slices_and_other_tables_have_none():
    scenario = Column("scenario", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.SLICE,))
    rows = ROWS.assign(share=1.0, scenario=["pair", "pair", "dynamic", "dynamic"])
    frame = kinds(columns=(*RUN_COLUMNS, SHARE, scenario), rows=rows).reset_index()
    whole = whole_kinds(frame)
    assert whole["kind"].tolist() == ["accuracy", "loss"] and set(whole["unit"]) == {"points"}
    assert whole["mean"].iloc[1] == pytest.approx(100 * (0.1 + 0) / 2)
    sliced = frame[frame["slice"] == "scenario"].set_index(["kind", "value"])["mean"]
    assert sliced["accuracy"].to_dict() == pytest.approx({"pair": 2, "dynamic": 4})
    assert len(frame) == 6
    none = kinds(columns=RUN_COLUMNS[:2], rows=ROWS.drop(columns="task_kind")).reset_index()
    assert list(none[KIND_COLUMNS]) == KIND_COLUMNS and none.empty
    with warnings.catch_warnings(action="error"):
        assert len(whole_kinds(pd.DataFrame({"slice": [np.nan, np.nan]}))) == 2
