"""Errors of training runs by kind of result: values computed by hand."""

import warnings

import numpy as np
import pandas as pd
import pytest

from perfcast.evaluation.supplementary_tables import KIND_COLUMNS, tabulate_kind_errors, whole_kinds
from perfcast.schema.table import Column, Kind, Role, Table, Tag

COLUMNS = (
    Column("id", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.ROW,)),
    Column("run", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.BLOCK,)),
    Column("task_kind", Kind.CATEGORICAL, Role.KEY, "run"),
)
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


def kinds(points=POINTS, columns=COLUMNS, rows=ROWS):
    return tabulate_kind_errors(points, Table("runs", rows, columns), resamples=200, seed=0).set_index("kind")


def test_accuracies_are_in_points_and_losses_in_percent():
    frame = kinds()
    accuracy, loss = frame.loc["accuracy"], frame.loc["loss"]
    assert (accuracy["unit"], loss["unit"]) == ("points", "%")
    assert accuracy["mean"] == pytest.approx((2 + 4) / 2)
    assert accuracy["signed"] == pytest.approx((2 - 4) / 2)
    assert loss["mean"] == pytest.approx((5 + 0) / 2)
    assert (accuracy["rows"], accuracy["runs"]) == (2, 2)


def test_every_kind_is_in_points_where_the_target_is_a_share():
    columns = (*COLUMNS, Column("share", Kind.NUMERICAL, Role.TARGET, "run", "share of alone"))
    frame = kinds(columns=columns, rows=ROWS.assign(share=1.0))
    assert set(frame["unit"]) == {"points"}
    assert frame.loc["loss", "mean"] == pytest.approx(100 * (0.1 + 0) / 2)


def test_coverage_and_width_are_those_of_the_intervals():
    frame = kinds()
    # 0.52 / 0.50 is outside of exp(0.01), 0.36 / 0.40 inside of exp(0.2)
    assert frame.loc["accuracy", "coverage"] == pytest.approx(50)
    assert frame.loc["loss", "coverage"] == pytest.approx(100)
    assert frame.loc["loss", "width"] == pytest.approx(100 * (np.exp(0.1) - np.exp(-0.1)))


def test_the_interval_of_a_mean_holds_it():
    accuracy = kinds().loc["accuracy"]
    assert accuracy["low"] == pytest.approx(2) and accuracy["high"] == pytest.approx(4)


def test_other_tables_have_no_kinds():
    frame = tabulate_kind_errors(
        POINTS, Table("cpus", ROWS.drop(columns="task_kind"), COLUMNS[:2]), resamples=200, seed=0
    )
    assert list(frame.columns) == KIND_COLUMNS and frame.empty


def test_without_intervals_there_is_no_coverage():
    assert np.isnan(kinds(POINTS.assign(half_width=np.nan)).loc["accuracy", "coverage"])


def test_r2_is_the_explained_share_of_the_variance():
    loss = kinds().loc["loss"]
    # measured 2 and 4 with the mean 3; errors 0.1 and 0
    assert loss["r2"] == pytest.approx(1 - 0.01 / 2)
    constant = POINTS.assign(measured=1.0)
    assert np.isnan(kinds(constant).loc["loss", "r2"])


def test_the_interval_of_r2_holds_it():
    random, many = np.random.default_rng(0), 40
    rows = pd.DataFrame({"id": [f"r{n}" for n in range(many)], "run": [f"b{n // 2}" for n in range(many)]})
    measured = random.uniform(0.2, 1, many)
    points = pd.DataFrame({"split": "s", "predictor": "p", "row": rows["id"], "measured": measured})
    points = points.assign(predicted=measured + random.normal(0, 0.05, many), half_width=0.1)
    line = kinds(points, rows=rows.assign(task_kind="accuracy")).loc["accuracy"]
    assert line["r2_low"] < line["r2"] < line["r2_high"] < 1


def test_slices_of_shares_have_lines_of_their_own():
    columns = (
        *COLUMNS,
        Column("share", Kind.NUMERICAL, Role.TARGET, "run", "share of alone"),
        Column("scenario", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.SLICE,)),
    )
    rows = ROWS.assign(share=1.0, scenario=["pair", "pair", "dynamic", "dynamic"])
    frame = tabulate_kind_errors(POINTS, Table("runs", rows, columns), resamples=50, seed=0)
    whole = whole_kinds(frame)
    assert whole["kind"].tolist() == ["accuracy", "loss"]
    sliced = frame[frame["slice"] == "scenario"].set_index(["kind", "value"])["mean"]
    assert sliced["accuracy", "pair"] == pytest.approx(2)
    assert sliced["accuracy", "dynamic"] == pytest.approx(4)
    assert len(frame) == 6


def test_a_file_without_any_slice_has_whole_kinds_only():
    frame = pd.DataFrame({"slice": [np.nan, np.nan]})
    with warnings.catch_warnings(action="error"):
        assert len(whole_kinds(frame)) == 2
