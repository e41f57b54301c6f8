"""Errors of shares: in points, in tables, rankings, slices and the report."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from generated_results import fake_table, write_runs

from perfcast.evaluation import evaluate, headline
from perfcast.report.error_tables import metric_tables, paired_tables


@pytest.fixture(scope="module")
def runs_and_table(tmp_path_factory):
    table = fake_table(rows=300, seed=0)
    *others, target = table.columns
    shares = dataclasses.replace(table, columns=(*others, dataclasses.replace(target, unit="share of alone")))
    runs = write_runs(shares, tmp_path_factory.mktemp("runs"), seed=1)
    return {key: folder for key, folder in runs.items() if key[0] == "random"}, shares


@pytest.fixture(scope="module")
def evaluation(runs_and_table):
    runs, table = runs_and_table
    return evaluate(runs, table, resamples=50, seed=0)


def test_mean_and_median_are_of_absolute_differences(evaluation, runs_and_table):
    runs, _ = runs_and_table
    assert (evaluation.error_metrics, evaluation.error_unit) == (("mae", "medae"), "points")
    frame = pd.read_parquet(runs["random", "ridge"] / "predictions.parquet")
    points = 100 * (frame["predicted"] - frame["measured"]).abs()
    by_task = points.groupby(frame["task"])
    assert evaluation.value("random", "ridge")["value"] == pytest.approx(by_task.mean().mean())
    assert evaluation.value("random", "ridge", metric="medae")["value"] == pytest.approx(by_task.median().mean())
    assert evaluation.value("random", "ridge", metric="mape")["value"] > 0


def test_ranking_tables_and_differences_are_in_points(evaluation):
    by_predictor = {name: evaluation.value("random", name)["value"] for name in evaluation.predictors}
    assert evaluation.ranking() == sorted(by_predictor, key=by_predictor.get)
    grid = metric_tables(evaluation)[0]
    assert "points" in grid.caption
    assert grid.headings[1:] == ["MAE", "MedAE"]
    assert not evaluation.tables["noise"].empty
    assert not grid.foot
    first = next(cells for name, *cells in paired_tables(evaluation)[0].lines if name == "ridge")
    difference = by_predictor["ridge"] - by_predictor["nearest"]
    assert first[0].key == pytest.approx(difference)
    assert f"{by_predictor['ridge']:.2f}" in headline(evaluation)


def test_slices_are_in_points_with_an_interval_around_them(evaluation):
    slices = evaluation.tables["slices"]
    inside = (slices["low"] <= slices["mae"] + 1e-9) & (slices["mae"] <= slices["high"] + 1e-9)
    assert inside[np.isfinite(slices["low"])].mean() > 0.95
