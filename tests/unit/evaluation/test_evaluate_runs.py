"""Evaluation of runs: metrics, claims, slices, noise, intervals, what is refused and what is kept."""

import dataclasses
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from generated_results import LESS_TRAINING, fake_table, write_in_domain, write_runs

from perfcast.evaluation import (
    AVERAGE,
    choose_champion,
    evaluate,
    headline,
    metrics_tree,
    read_evaluation,
    write_evaluation,
)
from perfcast.evaluation.error_metrics import clear_winner
from perfcast.evaluation.run_predictions import read_backtests, read_predictions, with_intervals
from perfcast.evaluation.supplementary_tables import estimate_noise_floor
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def table():
    return fake_table(rows=1500, seed=0)


@pytest.fixture(scope="module")
def runs(table, tmp_path_factory):
    return write_runs(table, tmp_path_factory.mktemp("runs"), seed=1)


@pytest.fixture(scope="module")
def in_domain(table, tmp_path_factory):
    return write_in_domain(table, tmp_path_factory.mktemp("in_domain"), seed=1)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """A small table with runs of two predictors, to be copied."""
    small = fake_table(rows=300, seed=0)
    return small, write_runs(small, tmp_path_factory.mktemp("two"), seed=1, errors={"nearest": 0.2, "ridge": 0.1})


@pytest.fixture
def copied(two_runs, tmp_path):
    """The small table and copies of its runs on `random`, which a test may change."""
    small, folders = two_runs
    return small, {
        key: shutil.copytree(folder, tmp_path / key[1]) for key, folder in folders.items() if key[0] == "random"
    }


@pytest.fixture(scope="module")
def evaluation(table, runs, in_domain):
    return evaluate(runs, table, resamples=200, seed=0, in_domain=in_domain)


def test_evaluate_puts_every_metric_inside_its_interval(evaluation):
    assert len(evaluation.metrics) == (3 + len(LESS_TRAINING)) * 5 * 3 * 10
    assert (evaluation.metrics["low"] <= evaluation.metrics["value"] + 0.5).all()
    assert (evaluation.metrics["high"] >= evaluation.metrics["value"] - 0.5).all()
    assert evaluation.ranking() == ["network", "forest", "ridge", "power_law", "nearest"]


def test_mape_is_pooled_over_folds_and_averaged_over_tasks_and_seeds(evaluation, runs):
    frame = pd.read_parquet(runs["unseen_cpu", "network"] / "predictions.parquet")
    error = 100 * (frame["predicted"] / frame["measured"] - 1).abs()
    by_task = error.groupby([frame["task"], frame["seed"]]).mean().unstack()
    row = evaluation.value("unseen_cpu", "network")
    assert row["value"] == pytest.approx(by_task.to_numpy().mean())
    assert row["seed_sd"] == pytest.approx(by_task.mean().std())
    assert row["seeds"] == 2
    assert row["rows"] == frame["row"].nunique()
    assert np.isnan(evaluation.value("random", "nearest")["seed_sd"]), "of one seed"


def test_paired_differences_are_narrower_than_the_intervals_they_compare(evaluation):
    rows = evaluation.tables["paired"].query("against == 'baseline' and task == @AVERAGE and metric == 'mape'")
    assert set(rows["predictor"]) == {"network", "forest", "ridge", "power_law"}
    network = rows[(rows["predictor"] == "network") & (rows["split"] == "random")].iloc[0]
    value = [evaluation.value("random", name)["value"] for name in ("network", "nearest")]
    assert network["difference"] == pytest.approx(value[0] - value[1])
    assert network["claim"] == "better"
    assert clear_winner(evaluation.tables["paired"], "random", AVERAGE, "mape") == "network"


def test_equal_predictors_have_no_claim(two_runs):
    small, folders = two_runs
    result = evaluate(
        dict.fromkeys([("random", "nearest"), ("random", "ridge")], folders["random", "ridge"]),
        small,
        resamples=100,
        seed=0,
    )
    assert (result.tables["paired"]["difference"] == 0).all()
    assert (result.tables["paired"]["claim"] == "undecided").all()
    assert clear_winner(result.tables["paired"], "random", AVERAGE, "mape") is None


def test_slices_are_the_tasks_the_tagged_columns_and_the_year(evaluation):
    slices = evaluation.tables["slices"]
    assert list(slices["slice"].unique()) == ["suite", "machine_vendor", "generation", "year"]
    rows = slices.query("split == 'random' and predictor == 'nearest'")
    assert rows.groupby("slice")["rows"].sum().nunique() == 1


def noise_floor(machines, scores):
    columns = (
        Column("id", Kind.NUMERICAL, Role.KEY, "provenance", tags=(Tag.ROW,)),
        Column("machine", Kind.CATEGORICAL, Role.FEATURE, "system", tags=(Tag.CONFIG,)),
        Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
    )
    frame = pd.DataFrame({"id": range(len(scores)), "machine": machines, "score": scores})
    floor = estimate_noise_floor(pd.DataFrame({"task": ["only"]}), build_table("small", frame, columns))
    return floor[floor["task"] == "only"].iloc[0]


def test_noise_floor_matches_values_computed_by_hand_and_the_error_of_an_oracle():
    only = noise_floor(["m", "m", "n", None, None], [9, 11, 5, 20, 20])
    assert (only["configurations"], only["rows"]) == (2, 4)
    assert only["cv_mean"] == pytest.approx(100 * np.std([9, 11], ddof=1) / 10 / 2)
    assert only["mape_floor"] == pytest.approx(100 * np.sqrt(2) * (1 / 9 + 1 / 11) / 4)
    noise = np.random.default_rng(0).normal(0, 0.02, 4000)
    floor = noise_floor([f"m{number // 2}" for number in range(4000)], 50 * np.exp(noise))
    assert floor["mape_floor"] == pytest.approx(100 * np.abs(noise).mean(), rel=0.05)


def test_evaluate_accepts_a_dataset_without_configurations_slices_distances_and_backtests(two_runs):
    small, folders = two_runs
    bare = [dataclasses.replace(each, tags=tuple(set(each.tags) & {Tag.ROW, Tag.TASK})) for each in small.columns]
    result = evaluate(folders, dataclasses.replace(small, columns=tuple(bare)), resamples=20, seed=0)
    assert result.tables["noise"].empty and "noise floor" not in headline(result)
    assert set(result.tables["slices"]["slice"]) == {"suite"}
    assert result.metrics.loc[result.metrics["metric"] == "coverage", "value"].isna().all()
    assert result.tables["in_domain"].empty


def test_an_evaluation_is_written_with_equal_bytes_and_read_again(two_runs, evaluation, tmp_path):
    small, folders = two_runs
    for name in ("first", "second"):
        write_evaluation(evaluate(folders, small, resamples=20, seed=0), tmp_path / name)
    first, second = (
        {each.name: each.read_bytes() for each in (tmp_path / name).iterdir()} for name in ("first", "second")
    )
    assert first == second and len(first) == 12
    write_evaluation(evaluation, tmp_path / "one")
    read = read_evaluation(tmp_path / "one")
    assert headline(read) == headline(evaluation)
    for name in ("metrics", "slices", "paired", "noise", "history"):
        pd.testing.assert_frame_equal(read.tables[name], evaluation.tables[name], rtol=1e-5, check_dtype=False)
    (tmp_path / "one" / "pit.csv").unlink()
    with pytest.raises(UserError, match=r"pit\.csv must exist"):
        read_evaluation(tmp_path / "one")


def test_intervals_are_calibrated_on_every_split(evaluation):
    metrics = evaluation.metrics[evaluation.metrics["split"].isin(evaluation.ranked_splits)]
    coverage = metrics[metrics["metric"] == "coverage"]
    # what was backtested erred a tenth more than the test rows, but for the errors that a part's rows share
    assert coverage["value"].between(84, 97).all()
    wide, narrow = (evaluation.value("random", name, metric="width")["value"] for name in ("nearest", "network"))
    assert wide > 3 * narrow
    assert evaluation.tables["slices"].query("slice != 'suite'")["coverage"].between(60, 100).all()


def test_in_domain_table_has_errors_by_score(evaluation):
    lines = evaluation.tables["in_domain"].query("split == 'random' and predictor == 'ridge'")
    assert ((lines["from"] <= lines["in_domain_score"]) & (lines["in_domain_score"] <= lines["to"])).all()
    assert lines["rows"].sum() == evaluation.value("random", "ridge")["rows"]
    assert (lines["mape"] > 0).all()


def test_with_intervals_calibrates_each_fold_by_its_backtests(runs, in_domain):
    folder = runs["unseen_cpu", "ridge"]
    predictions, backtests = (pd.read_parquet(folder / f"{name}.parquet") for name in ("predictions", "backtest"))
    far = pd.read_parquet(in_domain["unseen_cpu"])
    before = with_intervals(predictions, backtests, far, 0.9)
    backtests.loc[backtests["fold"] == 2, "predicted"] *= 2
    after = with_intervals(predictions, backtests, far, 0.9)
    same = before["half_width"] == after["half_width"]
    assert same[predictions["fold"] != 2].all()
    assert (after["half_width"] > before["half_width"])[predictions["fold"] == 2].all()
    none = with_intervals(predictions, backtests[backtests["fold"] != 2], far, 0.9)
    assert none["half_width"].isna().equals(predictions["fold"] == 2)


def test_headline_and_metrics_tree_are_rounded_with_baseline_and_noise_floor(evaluation):
    lines = headline(evaluation).splitlines()
    assert lines[1].split() == ["predictor", "random", "unseen_cpu", "forward_2023"]
    assert lines[-3].startswith("nearest (baseline)")
    assert lines[-2].startswith("noise floor")
    few = evaluation.with_tables(metrics=evaluation.metrics.assign(entities=9))
    assert "Fewer than 10 tested machines: the table shows that the chain works, not a ranking." in headline(few)
    assert "not a ranking" not in headline(evaluation)
    tree = metrics_tree(evaluation)["random"]["nearest"]
    assert set(tree) == {"float", "integer", AVERAGE}
    value = tree["float"]["mape"]
    assert isinstance(value, float) and value == float(f"{value:.6g}")


def test_champion_is_the_smallest_inner_error_over_all_splits():
    inner = pd.DataFrame({"predictor": [*"abcab"], "error": [1.0, 2.0, 0.1, 9.0, 4.0]})
    inner["split"] = ["random"] * 3 + ["forward"] * 2
    assert choose_champion(inner) == "b"
    with pytest.raises(UserError, match="champion"):
        choose_champion(inner[inner["predictor"] == "c"].assign(error=np.nan))


def test_leaking_split_is_not_compared(evaluation):
    names = {"random": "shuffled"}
    best = (evaluation.metrics["split"] == "random") & (evaluation.metrics["predictor"] == "nearest")
    metrics = evaluation.metrics.assign(value=evaluation.metrics["value"].mask(best, 1e-9))
    renamed = evaluation.with_tables(metrics=metrics.assign(split=metrics["split"].replace(names)))
    assert (renamed.ranked_splits, renamed.comparison_splits) == (["unseen_cpu", "forward_2023"], ["shuffled"])
    assert renamed.ranking()[-1] == "nearest"
    assert headline(renamed).splitlines()[-2].startswith("shuffled: only for comparison")
    alone = renamed.with_tables(metrics=renamed.metrics[renamed.metrics["split"] == "shuffled"])
    assert (alone.ranked_splits, alone.ranking()[0]) == (["shuffled"], "nearest")


def test_learning_curve_splits_are_measured_and_not_compared(evaluation):
    assert evaluation.splits == evaluation.ranked_splits == ["random", "unseen_cpu", "forward_2023"]
    assert evaluation.comparison_splits == []
    assert evaluation.learning_curve_splits == list(LESS_TRAINING)
    assert evaluation.value("random_05_percent", "ridge")["value"] > evaluation.value("random", "ridge")["value"]
    best = evaluation.metrics["split"].isin(LESS_TRAINING) & (evaluation.metrics["predictor"] == "nearest")
    changed = evaluation.with_tables(
        metrics=evaluation.metrics.assign(value=evaluation.metrics["value"].mask(best, 1e-9))
    )
    assert changed.ranking() == evaluation.ranking()
    assert headline(changed).splitlines()[-1] == "3 learning-curve splits: in metrics.csv; not counted"
    assert not any(split in "\n".join(headline(changed).splitlines()) for split in LESS_TRAINING)
    alone = changed.with_tables(metrics=changed.metrics[changed.metrics["split"].isin(LESS_TRAINING)])
    assert alone.splits == alone.ranked_splits == list(LESS_TRAINING)
    assert alone.comparison_splits == []


def test_evaluate_refuses_missing_runs(table, tmp_path):
    with pytest.raises(UserError, match="predictions"):
        evaluate({("random", "ridge"): tmp_path}, table, resamples=10, seed=0)
    with pytest.raises(UserError, match="runs"):
        evaluate({}, table, resamples=10, seed=0)
    with pytest.raises(UserError, match="evaluation"):
        read_evaluation(tmp_path)


def rewrite(path, change):
    frame = pd.read_parquet(path)
    change(frame).to_parquet(path, index=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *(
            (lambda frame, bad=bad: frame.assign(predicted=bad), "predicted scores must be positive and finite")
            for bad in (0.0, -1.0, np.nan, np.inf)
        ),
        (lambda frame: frame.assign(measured=-1.0), "measured scores must be positive and finite"),
        (lambda frame: frame.assign(row="twice"), "a row stands twice within a seed"),
        (lambda frame: frame.drop(columns="fold"), "must have the column 'fold'"),
        (lambda frame: frame.iloc[1:], "same rows"),
    ],
)
def test_evaluate_refuses_predictions_of_another_kind_or_of_other_rows(copied, change, words):
    small, runs = copied
    rewrite(runs["random", "ridge"] / "predictions.parquet", change)
    with pytest.raises(UserError, match=words):
        evaluate(runs, small, resamples=10, seed=0)


def test_a_run_of_another_version_of_its_split_is_refused(copied):
    small, runs = copied
    record = runs["random", "ridge"] / "record.json"
    record.write_text(json.dumps({"dataset": "fake"}))
    evaluate(runs, small, resamples=10, seed=0)
    record.write_text(json.dumps({"split_version": 7}))
    with pytest.raises(UserError, match=r"'random' must be of version 1.*is of version 7"):
        evaluate(runs, small, resamples=10, seed=0)


def test_targets_that_were_not_measured_and_empty_backtests_are_left_out(copied, tmp_path):
    folder = copied[1]["random", "ridge"]
    missing = {"measured": np.nan, "predicted": np.nan}
    rewrite(folder / "predictions.parquet", lambda frame: pd.concat([frame.head(1).assign(**missing), frame.iloc[1:]]))
    frame = pd.read_parquet(folder / "predictions.parquet")
    assert len(read_predictions("random", "ridge", folder).frame) == len(frame) - 1
    # a training that had nothing to backtest on leaves an empty file
    path = tmp_path / "backtest.parquet"
    assert read_backtests(tmp_path) is None
    pd.DataFrame({"row": [], "backtest": []}).to_parquet(path)
    assert read_backtests(tmp_path) is None
    pd.DataFrame({"row": ["a"], "backtest": [0]}).to_parquet(path)
    with pytest.raises(UserError, match="must have the column 'fold'"):
        read_backtests(tmp_path)
